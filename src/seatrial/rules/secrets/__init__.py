"""ST6xx: Secrets, certificates and images."""
