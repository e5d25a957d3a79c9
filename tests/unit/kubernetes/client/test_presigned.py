"""Signed addresses, against the example of Amazon's documentation of them."""

from urllib.parse import parse_qs, urlsplit

import pytest

from paddock.kubernetes.client import presigned

# 2013-05-24 00:00:00 UTC
NOW = 1369353600.0


def test_the_documented_example() -> None:
    made = presigned.url(
        "https://examplebucket.s3.amazonaws.com/test.txt",
        "AKIAIOSFODNN7EXAMPLE",
        "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY",
        NOW,
        86400,
    )
    query = parse_qs(urlsplit(made).query)
    assert query["X-Amz-Credential"] == ["AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"]
    assert query["X-Amz-Signature"] == ["aeeed9bbccd4d02ee5c0109b86d86835f995330da4c265957d157751f604d404"]
    assert made.startswith("https://examplebucket.s3.amazonaws.com/test.txt?")


@pytest.mark.parametrize(
    ("host", "region"),
    [
        ("b.s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("s3.eu-central-1.amazonaws.com", "eu-central-1"),
        ("b.s3.amazonaws.com", "us-east-1"),
        ("minio.example:9000", "us-east-1"),
    ],
)
def test_the_region_is_in_the_name(host: str, region: str) -> None:
    query = parse_qs(urlsplit(presigned.url(f"https://{host}/b/k", "key", "secret", NOW)).query)
    assert query["X-Amz-Credential"][0].split("/")[2] == region
