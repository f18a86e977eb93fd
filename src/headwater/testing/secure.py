"""A broker that asks who is there: TLS, logins and permissions, for tests of what happens with and without them.

It is an embedded broker with three doors. `SECURE` is what its name says: TLS with a certificate of its own, SCRAM or
PLAIN logins, permissions per topic and group. `EXPIRED` is the same with a certificate that was valid last year. The
third, without TLS and login, is for the test itself, which may do everything there.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka.admin import (
    AclBinding,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)

from headwater.broker import Broker, process
from headwater.errors import SetupError
from headwater.install.java import check_java

__all__ = ["SecureBroker", "start_secure_broker"]

STORE_PASSWORD = "store-Pa55word"
_SECONDS = 30.0
_HASHING = 4096
_SHORT_LIVED = ("-J-XX:TieredStopAtLevel=1", "-J-XX:+UseSerialGC")  # half the time of a call


@dataclass(frozen=True)
class SecureBroker:
    """`broker` is the door for the test. `trust` and `trust_pem` know who signed the certificate, `other_trust` does
    not."""

    broker: Broker
    servers: str
    expired_servers: str
    directory: Path

    @property
    def trust(self) -> Path:
        return self.directory / "trust.p12"

    @property
    def other_trust(self) -> Path:
        return self.directory / "other-trust.p12"

    @property
    def trust_pem(self) -> Path:
        return self.directory / "trust.pem"

    def properties(self, user: str, password: str, mechanism: str = "SCRAM-SHA-256") -> dict[str, str]:
        """What a Java client is given to log in here, under the names that follow 'properties.'."""
        module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
        jaas = f'org.apache.kafka.common.security.{module} required username="{user}" password="{password}";'
        return {
            "bootstrap.servers": self.servers,
            "security.protocol": "SASL_SSL",
            "sasl.mechanism": mechanism,
            "sasl.jaas.config": jaas,
            "ssl.truststore.location": str(self.trust),
            "ssl.truststore.password": STORE_PASSWORD,
            "ssl.truststore.type": "PKCS12",
        }

    def add_user(self, user: str, password: str) -> None:
        """A SCRAM login. (The one PLAIN login is made at the start.)"""
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, _HASHING)
        wanted = UserScramCredentialUpsertion(user, info, password.encode())
        admin = self._admin()
        for done in admin.alter_user_scram_credentials([wanted]).values():
            done.result(_SECONDS)

    def allow(self, user: str, kind: ResourceType, names: Sequence[str], *operations: AclOperation) -> None:
        """Permissions on topics, groups or transactional ids whose names start with one of `names`."""
        bindings = [
            AclBinding(
                kind, name, ResourcePatternType.PREFIXED, f"User:{user}", "*", operation, AclPermissionType.ALLOW
            )
            for name in names
            for operation in operations
        ]
        admin = self._admin()
        for done in admin.create_acls(bindings).values():
            done.result(_SECONDS)

    def stop(self) -> None:
        self.broker.stop()

    def _admin(self) -> AdminClient:
        return AdminClient({"bootstrap.servers": self.broker.bootstrap_servers, "log_level": 0})


def start_secure_broker(directory: Path, plain_user: str, plain_password: str) -> SecureBroker:
    """It ends with this process. Certificates are made here, with the keytool of the Java in use."""
    port, controller, secure, expired = process.free_ports(4)
    _make_stores(directory)
    doors = f"PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure},EXPIRED://127.0.0.1:{expired}"
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    settings = {
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "listeners": f"{doors},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": doors,
        "listener.security.protocol.map": ("PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SECURE:SASL_SSL,EXPIRED:SASL_SSL"),
        "inter.broker.listener.name": "PLAINTEXT",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        # Whoever comes by the listener without a login: the test itself.
        "super.users": "User:ANONYMOUS",
    }
    for door, store in {"secure": "broker.p12", "expired": "expired.p12"}.items():
        at = f"listener.name.{door}."
        settings |= {
            f"{at}sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
            f"{at}plain.sasl.jaas.config": f'{plain} user_{plain_user}="{plain_password}";',
            f"{at}scram-sha-256.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;",
            f"{at}ssl.keystore.location": str(directory / store),
            f"{at}ssl.keystore.type": "PKCS12",
            f"{at}ssl.keystore.password": STORE_PASSWORD,
            f"{at}ssl.key.password": STORE_PASSWORD,
        }
    quick = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"]
    broker = Broker.start(directory / "broker", port, settings, die_with_parent=True, jvm_options=quick)
    return SecureBroker(broker, f"127.0.0.1:{secure}", f"127.0.0.1:{expired}", directory)


def _make_stores(directory: Path) -> None:
    """One authority has signed the broker's certificate and the expired one. `other-trust` knows only the latter."""
    made = _store(directory / "made.p12")
    _keytool("-genkeypair", "-alias", "authority", "-dname", "CN=authority", "-ext", "bc:c", "-keyalg", "EC", *made)
    for name, validity in {"broker": ["-validity", "2"], "expired": ["-startdate", "-400d", "-validity", "35"]}.items():
        subject = ["-alias", name, "-dname", f"CN={name}", "-ext", "san=ip:127.0.0.1", "-keyalg", "EC"]
        _keytool("-genkeypair", *subject, *validity, "-signer", "authority", *made)
        source = ["-srckeystore", str(directory / "made.p12"), "-srcalias", name, "-srcstorepass", STORE_PASSWORD]
        target = ["-destkeystore", str(directory / f"{name}.p12"), "-deststoretype", "PKCS12"]
        _keytool("-importkeystore", *source, *target, "-deststorepass", STORE_PASSWORD)
    for store, name in {"trust": "authority", "other-trust": "expired"}.items():
        pem = str(directory / f"{store}.pem")
        _keytool("-exportcert", "-rfc", "-alias", name, "-file", pem, *made)
        _keytool("-importcert", "-file", pem, "-alias", name, "-noprompt", *_store(directory / f"{store}.p12"))


def _store(path: Path) -> list[str]:
    return ["-keystore", str(path), "-storetype", "PKCS12", "-storepass", STORE_PASSWORD]


def _keytool(*arguments: str) -> None:
    tool = Path(check_java().command).with_name("keytool")
    done = subprocess.run([str(tool), *_SHORT_LIVED, *arguments], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise SetupError("A certificate could not be created.", detail=done.stdout + done.stderr)
