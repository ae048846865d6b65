/** `junction plan --proxy-mode ipvs`: what it prints, applied by the programs that it is for, and then again. */
import { deepEqual, equal, match } from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { GuestSuite } from '../suite.ts';
import { failed } from './ipvsKernel.ts';

const JUNCTION = fileURLToPath(new URL('./junction.js', import.meta.url));

/** With an endpoint that only this one has. */
function shop(endpoint: string): string {
  return `
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
endpoints: [{ addresses: [10.244.0.1] }, { addresses: [${endpoint}] }]
---
kind: EndpointSlice
metadata: { name: web-2, namespace: shop, labels: { kubernetes.io/service-name: web } }
addressType: IPv6
ports: [{ name: http, port: 8080 }]
endpoints: [{ addresses: ["fd00:244::1"] }]
`;
}

function planned(endpoint: string, ...flags: readonly string[]): string {
  const argv = [JUNCTION, 'plan', '--manifests', '-', '--proxy-mode', 'ipvs', ...flags];
  const { stdout, stderr, status } = spawnSync(process.execPath, argv, {
    input: shop(endpoint),
    encoding: 'utf8',
  });
  return status === 0 ? stdout : failed(stderr);
}

interface Shown {
  readonly states: readonly string[];
  /** What was printed besides, and the exit codes. */
  readonly said: readonly string[];
}

/** What the kernel has after each of these pieces of shell, in a network of their own with a server of another program. */
function afterEach(pieces: readonly string[]): Shown {
  const steps = pieces.map((piece) => `sh <<'PIECE' 2>&1\n${piece}PIECE\necho "exit $?"\nstate\n`).join('');
  const { stdout, stderr, status } = spawnSync('unshare', ['--net', 'sh'], {
    input: `${STATE}ip link set lo up\nipvsadm -A -t 192.0.2.99:99 -s rr\n${steps}`,
    encoding: 'utf8',
    env: { ...process.env, IPTABLES: 'iptables-legacy', IP6TABLES: 'ip6tables-legacy' },
  });
  equal(stderr, '');
  equal(status, 0);
  const parts = stdout.split(/^=====\n/m).slice(0, -1);
  return {
    said: parts.filter((_, index) => index % 2 === 0),
    states: parts.filter((_, index) => index % 2 === 1),
  };
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
    'the script, run again, leaves the same; run for another plan, its endpoints': async () => {
      const first = planned('10.244.1.1', '--output', 'script');
      const second = planned('10.244.1.2', '--output', 'script', '--ipvs-scheduler', 'lc');
      const { states, said } = afterEach([first, first, second]);
      deepEqual(said, ['exit 0\n', 'exit 0\n', 'exit 0\n']);
      const [before = '', again, after = ''] = states;
      equal(again, before);
      for (const state of [before, after]) {
        equal(state.match(/^-A PREROUTING .*-j KUBE-SERVICES$/gm)?.length, 2);
        match(state, /^-A -t 192\.0\.2\.99:99 -s rr$/m);
        match(state, / 10\.96\.0\.1\/32 /);
        match(state, / fd00:96::1\/128 /);
        match(state, /^add KUBE-NODE-PORT-TCP 30080$/m);
      }
      match(before, /^-A -t 10\.96\.0\.1:80 -s rr -p 10800$/m);
      match(after, /^-A -t 10\.96\.0\.1:80 -s lc -p 10800$/m);
      const servers = (state: string): readonly string[] =>
        (state.match(/^-a .*:80 -r \S+/gm) ?? []).map((line) => line.replace(/.* /, ''));
      deepEqual(servers(before), ['10.244.0.1:8080', '10.244.1.1:8080', '[fd00:244::1]:8080']);
      deepEqual(servers(after), ['10.244.0.1:8080', '10.244.1.2:8080', '[fd00:244::1]:8080']);
    },

    'each part of the text, taken twice by the program that it names, leaves the same': async () => {
      const parts = planned('10.244.1.1', '--family', 'ipv4').split(/^(?=# IPv4, )/m);
      const commands = parts.map((part) => {
        const [head = '', ...lines] = part.split('\n');
        const command = head.replace(/.*for: /, '').replace(/^iptables/, 'iptables-legacy');
        return `${command} <<'PART'\n${lines.filter((line) => line !== '').join('\n')}\nPART\n`;
      });
      const { states } = afterEach([commands.join(''), commands.join('')]);
      equal(states[1], states[0]);
      match(states[0] ?? '', /^-a -t 10\.96\.0\.1:80 -r 10\.244\.1\.1:8080 -m -w 1$/m);
    },
  },
};
