"""The instance's private certificates and keys, in its `pki` directory; used by cluster.py and realnode.py.

Two authorities: one for everything that talks to or is the API server, one for etcd alone, so that a user's client
certificate never opens etcd.
"""

import datetime as dt
import ipaddress
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

VALID_FOR = dt.timedelta(days=3650)
LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class Subject:
    """Whom a certificate names: for a client the user and its groups, for a server also its addresses."""

    name: str
    groups: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()


API_SERVER = Subject(
    "kube-apiserver",
    hosts=(*LOOPBACK, "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
)
SUBJECTS = {
    "kube-apiserver": API_SERVER,
    "nodelogs": Subject("nodelogs", hosts=LOOPBACK),
    "admin": Subject("devcluster-admin", groups=("system:masters",)),
    # The fake nodes' own user, so that the audit policy can leave it out.
    "kwok": Subject("devcluster-nodes", groups=("system:masters",)),
    "kubelet-client": Subject("kube-apiserver-kubelet-client", groups=("system:masters",)),
    "kube-controller-manager": Subject("system:kube-controller-manager"),
    "kube-scheduler": Subject("system:kube-scheduler"),
}
ETCD_SUBJECTS = {"etcd": Subject("etcd", hosts=LOOPBACK), "etcd-client": Subject("kube-apiserver")}


def ensure(pki: Path) -> None:
    """Make whatever is missing in `pki`: <name>.crt, <name>.key, ca.crt, etcd-ca.crt, service-account.key and .pub."""
    pki.mkdir(parents=True, exist_ok=True, mode=0o700)
    for authority, subjects in (("ca", SUBJECTS), ("etcd-ca", ETCD_SUBJECTS)):
        if not (pki / f"{authority}.crt").exists():
            make_authority(pki, authority)
        for name, subject in subjects.items():
            if not (pki / f"{name}.crt").exists():
                issue(pki, name, subject, authority=authority)
    if not (pki / "service-account.pub").exists():
        key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        _write(pki / "service-account.key", _pem(key))
        public = key.public_key().public_bytes(
            serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        _write(pki / "service-account.pub", public)


def issue(pki: Path, name: str, subject: Subject, *, authority: str = "ca") -> None:
    """Write <name>.crt and <name>.key for `subject`, signed by `authority`: a client's, with hosts also a server's."""
    issuer = x509.load_pem_x509_certificate((pki / f"{authority}.crt").read_bytes())
    signer = serialization.load_pem_private_key((pki / f"{authority}.key").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    key = ec.generate_private_key(ec.SECP256R1())
    usages = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if subject.hosts:
        usages.append(ExtendedKeyUsageOID.SERVER_AUTH)
    builder = (
        _builder(_name(subject.name, subject.groups), issuer.subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(signer.public_key()), critical=False
        )
    )
    if subject.hosts:
        builder = builder.add_extension(
            x509.SubjectAlternativeName([_host(h) for h in subject.hosts]), critical=False
        )
    certificate = builder.sign(signer, hashes.SHA256())
    _write(pki / f"{name}.key", _pem(key))
    _write(pki / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def make_authority(pki: Path, name: str) -> None:
    """Write <name>.crt and <name>.key of a new authority."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _name(f"devcluster-{name}")
    certificate = (
        _builder(subject, subject, key.public_key())
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_key_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(pki / f"{name}.key", _pem(key))
    _write(pki / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM))


def _builder(
    subject: x509.Name, issuer: x509.Name, public_key: ec.EllipticCurvePublicKey
) -> x509.CertificateBuilder:
    now = dt.datetime.now(dt.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - dt.timedelta(minutes=5))
        .not_valid_after(now + VALID_FOR)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(common_name: str, groups: Sequence[str] = ()) -> x509.Name:
    organizations = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, group) for group in groups]
    return x509.Name([*organizations, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    # The traditional form for both, which every Go program here reads.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _write(path: Path, content: bytes) -> None:
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as handle:
        handle.write(content)
