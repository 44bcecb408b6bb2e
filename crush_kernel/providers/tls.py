"""Which certificates are believed: the usual authorities and the ones the user adds."""

import logging
import ssl
from collections.abc import Mapping
from typing import Final

import certifi

logger = logging.getLogger(__name__)

_FILES: Final = ("SSL_CERT_FILE", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE")


def tls_context(environ: Mapping[str, str]) -> ssl.SSLContext:
    """Return a context that trusts Mozilla's list, the system's, and those in `environ`.

    What the variables name is added and replaces nothing, so that a company's own
    authority does not lock out everybody else. A file that cannot be used is logged.
    """
    context = ssl.create_default_context(cafile=certifi.where())
    context.load_default_certs()
    for name in _FILES:
        if path := environ.get(name, "").strip():
            _add(context, name, cafile=path)
    if path := environ.get("SSL_CERT_DIR", "").strip():
        _add(context, "SSL_CERT_DIR", capath=path)
    return context


def _add(
    context: ssl.SSLContext, name: str, *, cafile: str | None = None, capath: str | None = None
) -> None:
    try:
        context.load_verify_locations(cafile=cafile, capath=capath)
    except (OSError, ValueError) as error:  # `ssl.SSLError` is an `OSError`
        logger.warning("%s cannot be used: %s", name, error)
