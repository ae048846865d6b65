/** What every component of Kubernetes tells of itself: its build, its features, its requests to the API server. */
import { arch, platform } from 'node:os';
import { Counter, Gauge } from './instruments.ts';
import type { Registry } from './registry.ts';

export interface Feature {
  readonly name: string;
  /** Empty: generally available. */
  readonly stage: 'ALPHA' | 'BETA' | '' | 'DEPRECATED';
  readonly enabled: boolean;
}

export interface BuildInfo {
  /** `0.1.0` */
  readonly version: string;
  readonly gitCommit?: string;
  readonly buildDate?: string;
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

export function addBuildInfo(registry: Registry, build: BuildInfo): void {
  const [major = '', minor = ''] = build.version.split('.');
  registry
    .add(
      new Gauge({
        name: 'kubernetes_build_info',
        help: "[ALPHA] A metric with a constant '1' value labeled by major, minor, git version, git commit, git tree state, build date, Go version, and compiler from which Kubernetes was built, and platform on which it is running.",
        labels: BUILD_LABELS,
      }),
    )
    .set(
      {
        build_date: build.buildDate ?? '',
        compiler: `node ${process.version}`,
        git_commit: build.gitCommit ?? '',
        git_tree_state: '',
        git_version: `v${build.version}`,
        // Dashboards group by it, so the label is there; no Go was involved.
        go_version: '',
        major,
        minor,
        platform: `${platform()}/${goArchitecture()}`,
      },
      1,
    );
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

/** Requests to the API server. */
export class RestClientMetrics {
  readonly #requests: Counter<'code' | 'host' | 'method'>;

  constructor(registry: Registry) {
    this.#requests = registry.add(
      new Counter({
        name: 'rest_client_requests_total',
        help: '[ALPHA] Number of HTTP requests, partitioned by status code, method, and host.',
        labels: ['code', 'host', 'method'],
      }),
    );
  }

  /** `code` is `<error>` where there was no answer. */
  requested(request: { readonly code: string; readonly host: string; readonly method: string }): void {
    this.#requests.add(request);
  }
}
