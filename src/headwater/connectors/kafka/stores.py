"""Key and trust stores of Java as librdkafka takes them: PEM as it is, PKCS12 keys as they are, certificates of any
store as PEM by way of the JDK's keytool. A private key in a JKS store is never copied: its owner has to convert it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from headwater.errors import SetupError, ValidationError

__all__ = ["key_store", "trust_store"]

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_PASSWORD = "HEADWATER_STORE_PASSWORD"
_SECONDS = 30


def trust_store(properties: Mapping[str, str]) -> dict[str, str]:
    """Settings for the certificates that brokers are checked against."""
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location")
    if location is None:
        return {}
    if properties.get("ssl.truststore.type", "").upper() == "PEM":
        return {"ssl.ca.pem": _read(location, "ssl.truststore.location").decode()}
    _read(location, "ssl.truststore.location")
    return {"ssl.ca.pem": _certificates(location, properties.get("ssl.truststore.password", ""))}


def key_store(properties: Mapping[str, str]) -> dict[str, str]:
    """Settings for this client's own certificate and key."""
    password = {"ssl.key.password": properties["ssl.key.password"]} if "ssl.key.password" in properties else {}
    if "ssl.keystore.key" in properties:
        chain = properties.get("ssl.keystore.certificate.chain", "")
        return {"ssl.key.pem": properties["ssl.keystore.key"], "ssl.certificate.pem": chain, **password}
    location = properties.get("ssl.keystore.location")
    if location is None:
        return {}
    content = _read(location, "ssl.keystore.location")
    if properties.get("ssl.keystore.type", "").upper() == "PEM":
        text = content.decode()
        return {"ssl.key.pem": text, "ssl.certificate.pem": text, **password}
    if content.startswith(_JKS_MAGIC):
        target = str(Path(location).with_suffix(".p12"))
        command = f"keytool -importkeystore -srckeystore {location} -destkeystore {target} -deststoretype PKCS12"
        raise ValidationError(
            "'properties.ssl.keystore.location' is a JKS store, which this sink cannot open.",
            detail=f"Store: {location}",
            hint=f"Convert it with\n  {command}\nand use 'properties.ssl.keystore.location' = '{target}'.",
        )
    return {"ssl.keystore.location": location, "ssl.keystore.password": properties.get("ssl.keystore.password", "")}


def _read(location: str, key: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise ValidationError(
            f"The file of 'properties.{key}' cannot be read.", detail=f"{location}: {error.strerror}"
        ) from error


def _certificates(location: str, password: str) -> str:
    """All certificates of a store as PEM. The password goes by the environment: arguments are seen by everyone."""
    command = [_keytool(), "-list", "-rfc", "-keystore", location]
    environment = dict(os.environ)
    if password:
        command += ["-storepass:env", _PASSWORD]
        environment[_PASSWORD] = password
    done = subprocess.run(
        command, env=environment, input="\n", capture_output=True, text=True, timeout=_SECONDS, check=False
    )
    found: list[str] = []
    inside = False
    for line in done.stdout.splitlines():
        inside = inside or line.startswith("-----BEGIN CERTIFICATE")
        if inside:
            found.append(line)
        if line.startswith("-----END CERTIFICATE"):
            inside = False
    if done.returncode or not found:
        raise ValidationError(
            "The trust store of 'properties.ssl.truststore.location' cannot be opened.",
            detail=f"{location}: {(done.stdout + done.stderr).strip() or 'it has no certificate'}",
            hint="Check 'properties.ssl.truststore.password' and 'properties.ssl.truststore.type'.",
        )
    return "\n".join(found) + "\n"


def _keytool() -> str:
    home = os.environ.get("JAVA_HOME")
    own = Path(home) / "bin" / "keytool" if home else None
    found = str(own) if own is not None and own.exists() else shutil.which("keytool")
    if found is None:
        raise SetupError(
            "There is no 'keytool' to read a Java trust store with.",
            hint="Set JAVA_HOME to a JDK, or give the certificates as PEM: 'properties.ssl.truststore.type' = 'PEM'.",
        )
    return found
