"""From Argo CD Applications and ApplicationSets to releases."""
