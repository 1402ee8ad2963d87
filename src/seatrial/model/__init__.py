"""Plain data that packages pass around: refs and bodies, releases, trials, timelines, findings, results."""
