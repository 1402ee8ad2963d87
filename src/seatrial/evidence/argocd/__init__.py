"""What Argo CD's syncs show."""
