"""An empty database on the tests' own PostgreSQL server."""

import pytest

from tests.e2e.postgres_server import NAME, PostgresServer


@pytest.fixture
def postgres_url(postgres_server: PostgresServer) -> str:
    """Return the DATABASE_URL of an empty database."""
    postgres_server.start()
    postgres_server.create(NAME)
    return postgres_server.url
