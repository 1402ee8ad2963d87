"""Error texts and what they mean, as tables: one TOML file per topic. Data only; `explain.table` reads it."""
