/** A machine that exists only in a test: its files, its time, its programs. */
import { stringify } from 'yaml';
import type { ApiAccess } from '../../../../src/sources/api/credentials/identity.ts';
import { type LoadAccessOptions, loadAccess } from '../../../../src/sources/api/credentials/load.ts';
import type { PluginCall, PluginResult } from '../../../../src/system/pluginProcess.ts';
import { FakeClock } from '../../../time/fakeClock.ts';

export class Machine {
  readonly files: Map<string, string>;
  readonly env: Record<string, string> = {};
  readonly clock: FakeClock;
  wallTime = Date.parse('2026-05-01T12:00:00Z');
  readonly reads: string[] = [];
  readonly calls: PluginCall[] = [];
  plugin: (call: PluginCall) => PluginResult = () => ({ kind: 'failed', reason: 'ENOENT', isMissing: true });

  readonly pluginCertificates: (string | undefined)[] = [];

  constructor(clock = new FakeClock(), files = new Map<string, string>()) {
    this.clock = clock;
    this.files = files;
  }

  load(options: Pick<LoadAccessOptions, 'kubeconfig' | 'master'> = {}): Promise<ApiAccess> {
    return loadAccess({
      ...options,
      env: this.env,
      clock: this.clock,
      wallTime: () => this.wallTime,
      readFile: async (path) => {
        this.reads.push(path);
        const text = this.files.get(path);
        if (text === undefined) throw Object.assign(new Error('not there'), { code: 'ENOENT' });
        return text;
      },
      onPluginCertificate: (pem) => this.pluginCertificates.push(pem),
      runPlugin: async (call) => {
        this.calls.push(call);
        return this.plugin(call);
      },
    });
  }

  /** Writes `/etc/junction/config` with one cluster, user and context, and loads it. */
  kubeconfig(cluster: object, user: object = {}, master?: string): Promise<ApiAccess> {
    this.files.set('/etc/junction/config', kubeconfigText(cluster, user));
    return this.load({ kubeconfig: '/etc/junction/config', master });
  }
}

export function kubeconfigText(cluster: object, user: object): string {
  return stringify({
    apiVersion: 'v1',
    kind: 'Config',
    'current-context': 'prod',
    contexts: [{ name: 'prod', context: { cluster: 'main', user: 'proxy' } }],
    clusters: [{ name: 'main', cluster }],
    users: [{ name: 'proxy', user }],
  });
}

export function base64(text: string): string {
  return Buffer.from(text).toString('base64');
}
