// Something like what the real server composes; the real rules are in Python.
const NAME = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const KINDS = {
  kubevirt: "kubevirt.io/v1, VirtualMachine",
  kubermatic: "kubevirt.io/v1, VirtualMachine",
  stakater: "infrastructure.stakater.com/v1, VirtualMachine",
  virtrigaud: "infra.virtrigaud.io/v1beta1, VirtualMachine",
  vitistack: "vitistack.io/v1alpha1, Machine",
};

export function compose(form, rows) {
  const errors = [];
  const name = form.name || form.image || "machine";
  if (!NAME.test(name)) errors.push({ field: "name", message: "The name has a letter that no name of an object may have", fix: "Use lower-case letters, digits and hyphens." });
  const names = form.count > 1 ? Array.from({ length: form.count }, (_, index) => `${name}-${index + 1}`) : [name];
  const taken = rows.find((row) => row.namespace === form.namespace && names.includes(row.name));
  if (taken) errors.push({ field: "name", message: `There is a machine ${taken.name} in ${form.namespace} already`, fix: "Choose another name." });
  if (form.cpus < 1) errors.push({ field: "cpus", message: "A machine has at least one CPU", fix: "Enter 1 or more." });
  const [version, kind] = KINDS[form.dialect].split(", ");
  const one = (each) => `apiVersion: ${version}
kind: ${kind}
metadata:
  name: ${each}
  namespace: ${form.namespace}
spec:
  runStrategy: ${form.start ? "Always" : "Halted"}
  template:
    spec:
      domain:
        cpu:
          cores: ${form.cpus}
        memory:
          guest: ${form.memory || "1Gi"}
      volumes:
        - name: root
          dataVolume:
            name: ${each}-root   # ${form.image}, ${form.disk || "10Gi"}
        - name: seed
          cloudInitNoCloud:
            userData: |
              #cloud-config
              ssh_authorized_keys:
${form.keys.map((key) => `                - ${key.slice(0, 40)}…`).join("\n")}
`;
  const losses = form.dialect === "vitistack" && form.ports.length ? ["ports: a Machine of Vitistack has no place for them"] : [];
  return { yaml: names.map(one).join("---\n"), losses, remarks: ["The image is downloaded first (240 MiB)."], errors, machines: names.map((each) => `vm/${form.namespace}/${each}`) };
}
