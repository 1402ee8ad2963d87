"""Argo CD Applications and ApplicationSets become releases."""
