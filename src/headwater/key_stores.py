"""Key and trust stores of Java for clients that are not Java: PEM as it is, certificates of any store as PEM by way of
the JDK's keytool. librdkafka takes PKCS12 keys as they are; for Python's own TLS they are opened by `openssl`. A
private key in a JKS store is never copied: its owner has to convert it.
"""

from __future__ import annotations

import os
import shutil
import ssl
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from headwater.errors import SetupError, ValidationError

__all__ = ["key_store", "tls_context", "trust_store"]

_JKS_MAGIC = b"\xfe\xed\xfe\xed"
_PEM = b"-----BEGIN "
_PASSWORD = "HEADWATER_STORE_PASSWORD"
_SECONDS = 30


def trust_store(properties: Mapping[str, str]) -> dict[str, str]:
    """Settings for the certificates that brokers are checked against."""
    if "ssl.truststore.certificates" in properties:
        return {"ssl.ca.pem": properties["ssl.truststore.certificates"]}
    location = properties.get("ssl.truststore.location")
    if location is None:
        return {}
    content = _read(location, "properties.ssl.truststore.location")
    if properties.get("ssl.truststore.type", "").upper() == "PEM":
        return {"ssl.ca.pem": content.decode()}
    return {"ssl.ca.pem": _certificates(location, properties.get("ssl.truststore.password", ""), "properties.")}


def key_store(properties: Mapping[str, str]) -> dict[str, str]:
    """Settings for this client's own certificate and key."""
    password = {"ssl.key.password": properties["ssl.key.password"]} if "ssl.key.password" in properties else {}
    if "ssl.keystore.key" in properties:
        chain = properties.get("ssl.keystore.certificate.chain", "")
        return {"ssl.key.pem": properties["ssl.keystore.key"], "ssl.certificate.pem": chain, **password}
    location = properties.get("ssl.keystore.location")
    if location is None:
        return {}
    content = _read(location, "properties.ssl.keystore.location")
    if properties.get("ssl.keystore.type", "").upper() == "PEM":
        text = content.decode()
        return {"ssl.key.pem": text, "ssl.certificate.pem": text, **password}
    if content.startswith(_JKS_MAGIC):
        raise _is_jks(location, "properties.ssl.keystore.location", "this sink")
    return {"ssl.keystore.location": location, "ssl.keystore.password": properties.get("ssl.keystore.password", "")}


def tls_context(stores: Mapping[str, str], *, checks_name: bool) -> ssl.SSLContext:
    """For Python's TLS, from 'ssl.truststore.*' and 'ssl.keystore.*'. What kind of store a file is, it says itself."""
    location, password = stores.get("ssl.truststore.location"), stores.get("ssl.truststore.password", "")
    trusted = None
    if location is not None:
        content = _read(location, "ssl.truststore.location")
        trusted = content.decode() if _PEM in content else _certificates(location, password, "")
    context = ssl.create_default_context(cadata=trusted)
    context.check_hostname = checks_name
    if "ssl.keystore.location" in stores:
        _load_key(context, stores)
    return context


def _load_key(context: ssl.SSLContext, stores: Mapping[str, str]) -> None:
    location = stores["ssl.keystore.location"]
    password = stores.get("ssl.keystore.password", "")
    content = _read(location, "ssl.keystore.location")
    if content.startswith(_JKS_MAGIC):
        raise _is_jks(location, "ssl.keystore.location", "this client")
    try:
        if _PEM in content:
            context.load_cert_chain(location, password=stores.get("ssl.key.password", password))
            return
        # For its owner alone; Python loads keys from files only.
        with tempfile.TemporaryDirectory() as directory:
            opened = Path(directory) / "key.pem"
            # With its mode before it has any content, although the directory is private already.
            opened.touch(mode=0o600)
            opened.write_bytes(_opened(location, password))
            context.load_cert_chain(opened)
    except (ssl.SSLError, OSError) as error:
        raise ValidationError(
            "The key store of 'ssl.keystore.location' cannot be opened.",
            detail=f"{location}: {error.strerror or error}",
            hint="Check 'ssl.keystore.password', and that the store has a certificate with its key.",
        ) from None


def _opened(location: str, password: str) -> bytes:
    """A PKCS12 store as PEM."""
    tool = shutil.which("openssl")
    if tool is None:
        raise SetupError(
            "There is no 'openssl' to open a PKCS12 key store with.",
            hint="Install it, or give 'ssl.keystore.location' a PEM file with certificate and key.",
        )
    command = [tool, "pkcs12", "-in", location, "-nodes", "-passin", f"env:{_PASSWORD}"]
    environment = {**os.environ, _PASSWORD: password}
    done = subprocess.run(command, env=environment, capture_output=True, timeout=_SECONDS, check=False)
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().splitlines()
        raise OSError(0, said[0] if said else "openssl refused it")
    return done.stdout


def _is_jks(location: str, key: str, who: str) -> ValidationError:
    target = str(Path(location).with_suffix(".p12"))
    command = f"keytool -importkeystore -srckeystore {location} -destkeystore {target} -deststoretype PKCS12"
    return ValidationError(
        f"'{key}' is a JKS store, which {who} cannot open.",
        detail=f"Store: {location}",
        hint=f"Convert it with\n  {command}\nand use '{key}' = '{target}'.",
    )


def _read(location: str, key: str) -> bytes:
    try:
        return Path(location).read_bytes()
    except OSError as error:
        raise ValidationError(f"The file of '{key}' cannot be read.", detail=f"{location}: {error.strerror}") from error


def _certificates(location: str, password: str, prefix: str) -> str:
    """All certificates of a store as PEM. The password goes by the environment: arguments are seen by everyone."""
    command = [_keytool(), "-list", "-rfc", "-keystore", location]
    environment = dict(os.environ)
    if password:
        command += ["-storepass:env", _PASSWORD]
        environment[_PASSWORD] = password
    # Without a password keytool asks for one; an empty line lets it list them unverified, where the store allows that.
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
            f"The trust store of '{prefix}ssl.truststore.location' cannot be opened.",
            detail=f"{location}: {(done.stdout + done.stderr).strip() or 'it has no certificate'}",
            hint=f"Check '{prefix}ssl.truststore.password' and '{prefix}ssl.truststore.type'.",
        )
    return "\n".join(found) + "\n"


def _keytool() -> str:
    home = os.environ.get("JAVA_HOME")
    own = Path(home) / "bin" / "keytool" if home else None
    found = str(own) if own is not None and own.exists() else shutil.which("keytool")
    if found is None:
        raise SetupError(
            "There is no 'keytool' to read a Java trust store with.",
            hint="Set JAVA_HOME to a JDK, or give the certificates as a PEM file.",
        )
    return found
