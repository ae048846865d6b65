/** What every component of Kubernetes reports of itself: its build, its features and its health checks. */
import { arch, platform } from 'node:os';
import { counter, gauge, type Instruments, register, Registry } from './instruments.ts';

const BUILD_INFO = {
  kubernetes_build_info: gauge(
    "[BETA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
    [
      'build_date',
      'compiler',
      'git_commit',
      'git_tree_state',
      'git_version',
      'go_version',
      'major',
      'minor',
      'platform',
    ],
  ),
  junction_build_info: gauge(
    'Always 1; which Junction this is, of which commit and when it was built, and the Node.js that runs it',
    ['build_date', 'commit', 'node_version', 'version'],
  ),
};

interface BuildInfo {
  /** `0.2.0` */
  readonly version: string;
  readonly commit: string;
  readonly date: string;
  /** `1.36.4`: the release of Kubernetes whose kube-proxy this takes the place of. */
  readonly kubernetesVersion: string;
}

/**
 * kubernetes-mixin's KubeVersionMismatch compares `git_version` of every job up to the minor version, so it is that of
 * Kubernetes, with ours behind it as distributions do: v1.36.4+junction-0.2.0. See decision 0031.
 */
export function addBuildInfo(registry: Registry, build: BuildInfo): void {
  const { version, commit, date, kubernetesVersion } = build;
  const [major = '', minor = ''] = kubernetesVersion.split('.');
  const { kubernetes_build_info, junction_build_info } = register(registry, BUILD_INFO);
  kubernetes_build_info.set(
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
      platform: `${platform()}/${arch() === 'x64' ? 'amd64' : arch()}`,
    },
    1,
  );
  junction_build_info.set(
    { build_date: known(date), commit: known(commit), node_version: process.version, version },
    1,
  );
}

/** A label that is empty is the same as none. */
function known(text: string): string {
  return text === 'unknown' ? '' : text;
}

const FEATURES = {
  kubernetes_feature_enabled: gauge(
    '[BETA] This metric records the data about the stage and enablement of a k8s feature.',
    ['name', 'stage'],
  ),
};

interface Feature {
  readonly name: string;
  /** Empty: generally available. */
  readonly stage: 'ALPHA' | 'BETA' | '' | 'DEPRECATED';
  readonly enabled: boolean;
}

export function addFeatures(registry: Registry, features: Iterable<Feature>): void {
  const { kubernetes_feature_enabled } = register(registry, FEATURES);
  for (const { name, stage, enabled } of features)
    kubernetes_feature_enabled.set({ name, stage }, enabled ? 1 : 0);
}

const HEALTH_CHECKS = {
  kubernetes_healthcheck: gauge('[STABLE] This metric records the result of a single healthcheck.', [
    'name',
    'type',
  ]),
  kubernetes_healthchecks_total: counter('[STABLE] This metric records the results of all healthcheck.', [
    'name',
    'status',
    'type',
  ]),
};

/** Service-level indicators: the results of the checks behind `/healthz` of the metrics port. */
export class HealthcheckMetrics {
  readonly #registry = new Registry();
  readonly #metrics: Instruments<typeof HEALTH_CHECKS> = register(this.#registry, HEALTH_CHECKS);

  checked(name: string, type: string, succeeded: boolean): void {
    this.#metrics.kubernetes_healthcheck.set({ name, type }, succeeded ? 1 : 0);
    this.#metrics.kubernetes_healthchecks_total.add({ name, type, status: succeeded ? 'success' : 'error' });
  }

  reset(): void {
    for (const metric of Object.values(this.#metrics)) metric.reset();
  }

  print(): Promise<string> {
    return this.#registry.print();
  }
}
