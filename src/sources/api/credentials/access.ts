/** How to reach the API server, with which identity. */
import type { PluginCall, PluginResult } from '../../../system/pluginProcess.ts';
import type { Clock } from '../../../time/clock.ts';

export interface ApiAccess {
  /** Where this was read, for messages: `kubeconfig /etc/junction.conf, context prod`. */
  readonly origin: string;
  readonly server: URL;
  /** Its host and port as they were written, for metrics; client-go shows them so. */
  readonly host?: string;
  /** insecure-skip-tls-verify */
  readonly insecure?: boolean;
  /** The name that the server's certificate must have, when it is not the one in the URL. */
  readonly serverName?: string | undefined;
  readonly proxy?: URL | undefined;
  /** As it is now: files are read again from time to time, plugins run when their credential expires. */
  identity(): Promise<Identity>;
  /** The server did not take the identity: the next one is read afresh. False: there is nothing to read again. */
  renew(): Promise<boolean>;
}

/** Texts in PEM, and the value of the Authorization header. Never printed. */
export interface Identity {
  readonly authorization?: string | undefined;
  readonly ca?: string | undefined;
  readonly certificate?: string | undefined;
  readonly key?: string | undefined;
}

/** Starts a credential plugin. It must come to an end, whatever the plugin does. */
type PluginRunner = (call: PluginCall) => Promise<PluginResult>;

/** What credentials need of the machine. */
export interface Environment {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly readFile: (path: string) => Promise<string>;
  readonly clock: Clock;
  /** Milliseconds since the epoch. */
  readonly wallTime: () => number;
  readonly runPlugin: PluginRunner;
  /** The client certificate that a plugin gave, in PEM; `undefined`: a token alone. */
  readonly onPluginCertificate?: ((pem: string | undefined) => void) | undefined;
}
