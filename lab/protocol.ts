/**
 * What the lab and its agents say to each other: one JSON object per line, calls down the agent's stdin, results
 * up its stdout. Shared by both sides, so types only.
 */
export type Transport = 'tcp' | 'udp' | 'sctp';

/** What a server in the lab says about the connection or datagram that reached it. */
export interface Reply {
  readonly host: string;
  /** The server's own end: where the packet arrived after all translation. */
  readonly address: string;
  readonly port: number;
  /** Who the server thinks is asking. */
  readonly peer: string;
  readonly protocol: Transport;
}

export type Outcome =
  | { readonly outcome: 'answer'; readonly reply: Reply }
  | { readonly outcome: 'refused' }
  | { readonly outcome: 'timeout' }
  | { readonly outcome: 'unreachable'; readonly code: string };

export interface Listen {
  readonly protocol: Transport;
  readonly port: number;
  /** Absent: the wildcard of both families. */
  readonly address?: string;
}

export interface Dial {
  readonly address: string;
  readonly port: number;
  readonly timeoutMs: number;
  readonly source?: string;
  readonly sourcePort?: number;
}

export interface Command {
  readonly argv: readonly string[];
  readonly stdin?: string;
  readonly timeoutMs: number;
}

export interface CommandResult {
  /** `null` when a signal ended the command. */
  readonly exitCode: number | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly timedOut: boolean;
}

export interface Operations {
  /** Paths below /proc/sys with their values; answers with those that could not be written. */
  readonly sysctl: { readonly input: Readonly<Record<string, string>>; readonly output: readonly string[] };
  readonly serve: { readonly input: readonly Listen[]; readonly output: number };
  /** What keeps the host from speaking SCTP; `null`: nothing. */
  readonly whyNoSctp: { readonly input: null; readonly output: string | null };
  readonly stopServing: { readonly input: number; readonly output: null };
  readonly request: { readonly input: Dial & { readonly protocol: Transport }; readonly output: Outcome };
  readonly openSession: { readonly input: Dial; readonly output: OpenedSession };
  readonly send: {
    readonly input: { readonly session: number; readonly timeoutMs: number };
    readonly output: Outcome;
  };
  readonly closeSession: { readonly input: number; readonly output: null };
  readonly exec: { readonly input: Command; readonly output: CommandResult };
}

export type OpenedSession =
  | { readonly outcome: 'open'; readonly session: number }
  | Exclude<Outcome, { outcome: 'answer' }>;

export type OperationName = keyof Operations;

export type Call = {
  readonly [Name in OperationName]: {
    readonly id: number;
    readonly operation: Name;
    readonly input: Operations[Name]['input'];
  };
}[OperationName];

export type FromAgent =
  | { readonly ready: true }
  | { readonly id: number; readonly output: unknown }
  | { readonly id: number; readonly error: string };
