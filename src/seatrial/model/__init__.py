"""Plain data that is passed around: refs and bodies, releases, trials, timelines, findings, results."""
