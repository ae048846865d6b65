/** `junction plan --proxy-mode ipvs`: what it prints, applied by the programs that it is for, and then again. */
import { equal, match } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { GuestSuite } from '../suite.ts';

const JUNCTION = fileURLToPath(new URL('./junction.js', import.meta.url));

const SHOP = `
kind: Service
metadata: { name: web, namespace: shop }
spec:
  type: NodePort
  clusterIP: 10.96.0.1
  clusterIPs: [10.96.0.1, "fd00:96::1"]
  ipFamilies: [IPv4, IPv6]
  sessionAffinity: ClientIP
  ports: [{ name: http, port: 80, nodePort: 30080 }, { name: sctp, port: 9, protocol: SCTP, nodePort: 30009 }]
---
kind: EndpointSlice
metadata: { name: web-1, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv4
ports: [{ name: http, port: 8080 }, { name: sctp, port: 90, protocol: SCTP }]
endpoints: [{ addresses: [10.244.0.1] }, { addresses: [10.244.1.1] }]
---
kind: EndpointSlice
metadata: { name: web-2, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv6
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: ["fd00:244::1"] }]
`;

function planned(...flags: readonly string[]): string {
  const argv = [JUNCTION, 'plan', '--manifests', '-', '--proxy-mode', 'ipvs', ...flags];
  const { stdout, stderr, status } = spawnSync(process.execPath, argv, {
    input: SHOP,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stderr);
  return stdout;
}

/** What the kernel has after each of these pieces of shell, in a network of their own with a server of another program. */
function afterEach(pieces: readonly string[]): readonly string[] {
  const steps = pieces.map((piece) => `sh <<'PIECE' 2>&1\n${piece}PIECE\nstate\n`).join('');
  const { stdout, stderr, status } = spawnSync('unshare', ['--net', 'sh'], {
    input: `${STATE}ip link set lo up\nipvsadm -A -t 192.0.2.99:99 -s rr\n${steps}`,
    encoding: 'utf8',
  });
  equal(stderr, '');
  equal(status, 0);
  return stdout.split(/^=====\n/m).filter((_, index) => index % 2 === 1);
}

const STATE = `state() {
  echo =====
  ipset save | sort
  ipvsadm --save --numeric | sort
  for family in iptables ip6tables; do $family-legacy-save | sed '/^#/d; s/\\[[0-9:]*\\]//'; done
  ip -oneline address show dev kube-ipvs0
  echo =====
}
`;

export const IPVS_PLAN: GuestSuite = {
  name: 'what junction plan prints in the IPVS mode',
  tests: {
    'each part of the text, taken twice by the program that it names, leaves the same': async () => {
      const parts = planned('--family', 'ipv4').split(/^(?=# IPv4, )/m);
      const commands = parts.map((part) => {
        const [head = '', ...lines] = part.split('\n');
        const command = head.replace(/.*for: /, '').replace(/^iptables/, 'iptables-legacy');
        return `${command} <<'PART'\n${lines.filter((line) => line !== '').join('\n')}\nPART\n`;
      });
      const states = afterEach([commands.join(''), commands.join('')]);
      equal(states[1], states[0]);
      match(states[0] ?? '', /^-a -t 10\.96\.0\.1:80 -r 10\.244\.1\.1:8080 -m -w 1$/m);
    },
  },
};
