"""Keys and passwords from Secrets: those that the agent keeps in the guest, and those that a seed brings."""

from paddock.client.target import Key
from paddock.controllers.virtualmachineinstance.lookups import Lookups
from paddock.controllers.virtualmachineinstance.runfollower import GuestCredentials
from paddock.dialects.core.secret import decoded
from paddock.dialects.kubevirt.access import CredentialSource
from paddock.dialects.kubevirt.instance import VirtualMachineInstanceSpec
from paddock.engine.seeds import seed as seeds


class CredentialReader:
    """Reads credentials; who asked hears when a Secret changes."""

    def __init__(self, lookups: Lookups) -> None:
        self._lookups = lookups

    def of(self, who: Key, spec: VirtualMachineInstanceSpec) -> GuestCredentials:
        """What the agent keeps in the guest."""
        keys: dict[str, tuple[str, ...]] = {}
        passwords: dict[str, str] = {}
        missing: list[str] = []
        for each in spec.accessCredentials or ():
            if each.sshPublicKey is not None and each.sshPublicKey.propagationMethod.qemuGuestAgent is not None:
                values = self._values(who, each.sshPublicKey.source, missing)
                for user in each.sshPublicKey.propagationMethod.qemuGuestAgent.users:
                    keys[user] = (*keys.get(user, ()), *seeds.public_keys(values))
            if each.userPassword is not None:
                found = self._values(who, each.userPassword.source, missing)
                passwords |= seeds.passwords(found)
        return GuestCredentials(keys, passwords, "; ".join(missing))

    def seeded(self, who: Key, spec: VirtualMachineInstanceSpec, method: str) -> tuple[tuple[str, ...], list[str]]:
        """The keys that a seed of this kind (noCloud, configDrive) brings, and what is missing."""
        found: list[str] = []
        missing: list[str] = []
        for each in spec.accessCredentials or ():
            if each.sshPublicKey is not None and getattr(each.sshPublicKey.propagationMethod, method) is not None:
                found += seeds.public_keys(self._values(who, each.sshPublicKey.source, missing))
        return tuple(found), missing

    def _values(self, who: Key, source: CredentialSource, missing: list[str]) -> dict[str, bytes]:
        name = source.secret.secretName if source.secret is not None else ""
        secret = self._lookups.secret(who, name)
        if secret is None:
            missing.append(f"the Secret {name} does not exist")
            return {}
        return decoded(secret)
