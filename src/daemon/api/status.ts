/** The answer to `/v1/status`: what is known already, put together. Costs nothing that grows with the cluster. */
import { readFileSync, readlinkSync } from 'node:fs';
import { attempt } from '../../errors.ts';
import type { SourceStatus, Status } from '../../explain/status.ts';
import type { PortRange } from '../../explain/subject.ts';
import { stageOf, statusFindings } from '../../explain/statusFindings.ts';
import type { ModeName } from '../../model/mode.ts';
import type { HealthState } from '../../telemetry/http/health.ts';
import { VERSION } from '../../version.ts';
import type { FamilyRuntime } from '../familyRuntime.ts';

interface StatusParts {
  readonly nodeName: string;
  readonly mode: ModeName;
  readonly layout: string;
  readonly startedAt: number;
  readonly source: () => SourceStatus;
  readonly families: readonly FamilyRuntime[];
  readonly health: HealthState;
  readonly sysctlRoot: string;
}

export function statusOf(parts: StatusParts): Status {
  const { nodeName: node, mode, layout, startedAt, source, families, health, sysctlRoot } = parts;
  const networkNamespace = attempt(() => readlinkSync('/proc/self/ns/net'));
  const conntrack = attempt(() => ({
    count: readNumber(`${sysctlRoot}/net/netfilter/nf_conntrack_count`),
    max: readNumber(`${sysctlRoot}/net/netfilter/nf_conntrack_max`),
  }));
  const { leftOut, families: states } = health.check();
  const late = states.filter(({ healthy }) => !healthy).map(({ family }) => family);
  const observed = {
    source: source(),
    families: families.map((family) => family.status),
    leftOut: leftOut.map(({ family, reason, since }) => ({
      family,
      reason,
      since: Number(since.wallNs / 1_000_000n),
    })),
  };
  const findings = statusFindings({ ...observed, late, ...(conntrack && { conntrack }) });
  return {
    version: VERSION,
    processId: process.pid,
    node,
    mode,
    layout,
    ...(networkNamespace !== undefined && { networkNamespace }),
    startedAt,
    now: Date.now(),
    ...observed,
    ...(conntrack && { conntrack }),
    findings,
    state: stageOf({ ...observed, findings }),
  };
}

function readNumber(path: string): number {
  return Number(readFileSync(path, 'utf8'));
}

export function readEphemeralPorts(sysctlRoot: string): PortRange | undefined {
  const text = attempt(() => readFileSync(`${sysctlRoot}/net/ipv4/ip_local_port_range`, 'utf8'));
  const [first = Number.NaN, last = Number.NaN] = text?.trim().split(/\s+/).map(Number) ?? [];
  return Number.isNaN(first) || Number.isNaN(last) ? undefined : { first, last };
}
