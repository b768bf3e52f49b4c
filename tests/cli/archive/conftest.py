"""What tests of archives share: the object store, and archives that are filled."""

from tests.archive.conftest import bucket, filled, filled_once, own_spool, s3_environment, s3_server

__all__ = ["bucket", "filled", "filled_once", "own_spool", "s3_environment", "s3_server"]
