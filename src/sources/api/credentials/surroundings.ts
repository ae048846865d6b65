/** What credentials ask of the machine. */
import type { Clock } from '../../../time/clock.ts';

export interface PluginCall {
  readonly command: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type PluginResult =
  | { readonly kind: 'ran'; readonly code: number; readonly stdout: string; readonly stderr: string }
  /** It could not be started, or was killed. */
  | { readonly kind: 'failed'; readonly reason: string; readonly isMissing: boolean };

/** Starts a credential plugin. It must come to an end, whatever the plugin does. */
export type PluginRunner = (call: PluginCall) => Promise<PluginResult>;

export interface Surroundings {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => Promise<string>;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  readonly runPlugin: PluginRunner;
  /** The client certificate that a plugin gave, in PEM; `undefined`: a token alone. */
  readonly onPluginCertificate?: ((pem: string | undefined) => void) | undefined;
}
