"""What the API serves: kinds, versions, schemas, OpenAPI documents."""
