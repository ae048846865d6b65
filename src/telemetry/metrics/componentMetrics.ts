import { arch, platform } from 'node:os';
import { Gauge, Registry, Counter } from './instruments.ts';

/** What every component of Kubernetes tells of itself: its build and its features. */

export interface Feature {
  readonly name: string;
  /** Empty: generally available. */
  readonly stage: 'ALPHA' | 'BETA' | '' | 'DEPRECATED';
  readonly enabled: boolean;
}

export interface BuildInfo {
  /** `0.1.0` */
  readonly version: string;
  readonly commit: string;
  readonly date: string;
  /** `1.36.4`: the release of Kubernetes whose kube-proxy this takes the place of. */
  readonly kubernetesVersion: string;
}

const BUILD_LABELS = [
  'build_date',
  'compiler',
  'git_commit',
  'git_tree_state',
  'git_version',
  'go_version',
  'major',
  'minor',
  'platform',
] as const;

/**
 * kubernetes-mixin's KubeVersionMismatch compares `git_version` of every job up to the minor version, so it is that of
 * Kubernetes, with ours behind it as distributions do: v1.36.4+junction-0.1.0. See decision 0031.
 */
export function addBuildInfo(registry: Registry, build: BuildInfo): void {
  const { version, commit, date, kubernetesVersion } = build;
  const [major = '', minor = ''] = kubernetesVersion.split('.');
  registry
    .add(
      new Gauge({
        name: 'kubernetes_build_info',
        help: "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
        labels: BUILD_LABELS,
      }),
    )
    .set(
      {
        build_date: known(date),
        compiler: `node ${process.version}`,
        git_commit: known(commit).replace(/-dirty$/, ''),
        git_tree_state: known(commit) && (commit.endsWith('-dirty') ? 'dirty' : 'clean'),
        git_version: `v${kubernetesVersion}+junction-${version}`,
        // Dashboards group by it, so the label is there; no Go was involved.
        go_version: '',
        major,
        minor,
        platform: `${platform()}/${goArchitecture()}`,
      },
      1,
    );
  registry
    .add(
      new Gauge({
        name: 'junction_build_info',
        help: 'Always 1; which Junction this is, of which commit and when it was built, and the Node.js that runs it',
        labels: ['build_date', 'commit', 'node_version', 'version'],
      }),
    )
    .set({ build_date: known(date), commit: known(commit), node_version: process.version, version }, 1);
}

/** A label that is empty is the same as none. */
function known(text: string): string {
  return text === 'unknown' ? '' : text;
}

function goArchitecture(): string {
  return arch() === 'x64' ? 'amd64' : arch();
}

export function addFeatures(registry: Registry, features: Iterable<Feature>): void {
  const gauge = registry.add(
    new Gauge({
      name: 'kubernetes_feature_enabled',
      help: '[BETA] This metric records the data about the stage and enablement of a k8s feature.',
      labels: ['name', 'stage'],
    }),
  );
  for (const { name, stage, enabled } of features) gauge.set({ name, stage }, enabled ? 1 : 0);
}

/** Service-level indicators: what the checks behind `/healthz` of the metrics port answered. */

export class HealthcheckMetrics {
  readonly #registry = new Registry();
  readonly #last = this.#registry.add(
    new Gauge({
      name: 'kubernetes_healthcheck',
      help: '[STABLE] This metric records the result of a single healthcheck.',
      labels: ['name', 'type'],
    }),
  );
  readonly #total = this.#registry.add(
    new Counter({
      name: 'kubernetes_healthchecks_total',
      help: '[STABLE] This metric records the results of all healthcheck.',
      labels: ['name', 'status', 'type'],
    }),
  );

  checked(name: string, type: string, succeeded: boolean): void {
    this.#last.set({ name, type }, succeeded ? 1 : 0);
    this.#total.add({ name, type, status: succeeded ? 'success' : 'error' });
  }

  reset(): void {
    this.#last.reset();
    this.#total.reset();
  }

  print(): Promise<string> {
    return this.#registry.print();
  }
}
