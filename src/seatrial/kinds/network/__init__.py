"""Services, endpoints, Ingresses and NetworkPolicies."""
