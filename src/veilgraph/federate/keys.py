"""Keys and certificates of a federation between machines: made here, never sent anywhere."""

from __future__ import annotations

import datetime
import ipaddress
import os
import socket
import ssl
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
    load_ssh_private_key,
)
from cryptography.x509.oid import NameOID

from veilgraph.errors import InputError, UsageError

VALID = datetime.timedelta(days=825)


def node_key(path: str | Path) -> Path:
    """A client's key: ``path`` stays with it, ``path``.pub goes to the server. Returns the public one."""
    private, public = Path(path), Path(f"{path}.pub")
    if private.exists() or public.exists():
        raise UsageError(f"{private} exists already: a key is not overwritten.")
    key = ec.generate_private_key(ec.SECP384R1())
    _write(private, key.private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption()), 0o600)
    _write(public, key.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH) + b"\n", 0o644)
    return public


def certificates(folder: Path, host: str) -> tuple[Path, Path, Path]:
    """ca.pem (for the clients), server.pem and server.key of a server at this address; those that are there are kept."""
    ca, certificate, own = folder / "ca.pem", folder / "server.pem", folder / "server.key"
    if ca.exists() and certificate.exists() and own.exists():
        return ca, certificate, own
    folder.mkdir(parents=True, exist_ok=True)
    root, key = ec.generate_private_key(ec.SECP384R1()), ec.generate_private_key(ec.SECP384R1())
    issuer = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "veilgraph federation")])
    names: list[x509.GeneralName] = [
        x509.DNSName("localhost"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
    ]
    try:
        names.append(x509.IPAddress(ipaddress.ip_address(host)))
    except ValueError:
        names.append(x509.DNSName(host))
    top = (
        _builder(issuer, issuer, root.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(root.public_key()), critical=False)
        .sign(root, hashes.SHA384())
    )
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, host[:64])])
    leaf = (
        _builder(subject, issuer, key.public_key())
        .add_extension(x509.SubjectAlternativeName(list(dict.fromkeys(names))), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(root.public_key()), critical=False)
        .sign(root, hashes.SHA384())
    )  # the root's own key is forgotten here: nothing else can ever be signed with it
    _write(own, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), 0o600)
    _write(certificate, leaf.public_bytes(Encoding.PEM), 0o644)
    _write(ca, top.public_bytes(Encoding.PEM), 0o644)
    return ca, certificate, own


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(minutes=5))
        .not_valid_after(now + VALID)
    )


def _write(path: Path, content: bytes, mode: int) -> None:
    path.unlink(missing_ok=True)
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(content)


def check_key(path: str | Path) -> None:
    """Raise for a file that is no private key made here."""
    try:
        load_ssh_private_key(Path(path).read_bytes(), None)
    except (OSError, ValueError, TypeError, UnsupportedAlgorithm):
        raise InputError(
            f"{path} is no private key: make one with veil federate key FILE, and name FILE (not FILE.pub)."
        ) from None


def check_certificate(path: str | Path, address: str) -> None:
    """Raise for a file that is no certificate, for an address that is none, or where somebody else answers."""
    host, _, port = address.rpartition(":")
    host = host.strip("[]")
    if not host or not port.isdigit() or int(port) > 65535:
        raise InputError(f"{address!r} is no address of a server: expected HOST:PORT.")
    try:
        trusted = ssl.create_default_context(cafile=str(path))
    except (OSError, ssl.SSLError):
        raise InputError(
            f"{path} is no certificate: ask whoever runs the server for its tls/ca.pem."
        ) from None
    try:
        with (
            socket.create_connection((host, int(port)), 5) as plain,
            trusted.wrap_socket(plain, server_hostname=host),
        ):
            return
    except ssl.SSLCertVerificationError as error:
        raise InputError(
            f"{path} did not sign the certificate of {address} ({error.verify_message}): ask whoever runs the server for its tls/ca.pem."
        ) from None
    except socket.gaierror:
        raise InputError(f"there is no machine called {host}.") from None
    except (OSError, UnicodeError):
        return  # it may be started later: clients wait
