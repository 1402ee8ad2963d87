"""ST1xx: CRDs and custom resources."""
