"""A pool whose Ray is encrypted: whoever has no certificate of its authority gets no word of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from gpu_backend.pool import clusters, commands, joining, machines, settings, state
from gpu_backend.wire.errors import PoolRefusal
from tests.integration.conftest import MakePool
from tests.ray_nodes import NEEDS_RAY
from tests.spare_ports import spare_ports

PEM = serialization.Encoding.PEM

pytestmark = [pytest.mark.ray, NEEDS_RAY, pytest.mark.timeout(600)]


def certified(name: str, key: ec.EllipticCurvePrivateKey, by: str, signer: ec.EllipticCurvePrivateKey) -> bytes:
    """Return the certificate of ``name`` by the authority ``by``, which may be itself."""
    is_authority, now = name == by, datetime.now(UTC)
    named, signed = (x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, one)]) for one in (name, by))
    builder = x509.CertificateBuilder(signed, named, key.public_key(), x509.random_serial_number())
    builder = builder.not_valid_before(now - timedelta(hours=1)).not_valid_after(now + timedelta(hours=1))
    builder = builder.add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
    addresses = x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))])
    return builder.add_extension(addresses, False).sign(signer, hashes.SHA256()).public_bytes(PEM)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory as `--ray-certificates` wants it."""
    directory = tmp_path_factory.mktemp("certificates")
    authority, own = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    (directory / "ca.crt").write_bytes(certified("authority", authority, "authority", authority))
    (directory / "tls.crt").write_bytes(certified("gpu", own, "authority", authority))
    private = own.private_bytes(PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (directory / "tls.key").write_bytes(private)
    return directory


def test_its_members_have_certificates_and_others_are_told_so(
    make_pool: MakePool, certificates: Path, tmp_path: Path
) -> None:
    ports = spare_ports(2)
    pool = make_pool(
        engine="ray", nodes_host="127.0.0.1", nodes_port=ports[0], ray_port=ports[1], ray_certificates=str(certificates)
    )
    ticket = pool.open()
    assert pool.sessions() == {ticket.session: "serving"}
    cluster = clusters.of_head(pool.state, settings.read(pool.state.settings_file))
    assert cluster.look().problem == ""
    assert replace(cluster, certificates=None).look().problem == "silent"
    invited = machines.invite(pool.state, "m", 1.0)
    given = {"executor_host": "127.0.0.1", "devices": "cpu"}
    with pytest.raises(PoolRefusal, match="with --ray-certificates DIR"):
        joining.join(state.at(tmp_path / "m"), invited.address, invited.token, given)
    commands.down(pool.state)
