"""ST7xx: several releases, engines and engine versions."""
