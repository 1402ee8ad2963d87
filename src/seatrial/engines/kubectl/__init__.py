"""kubectl apply and delete, as scripts."""
