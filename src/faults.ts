/**
 * Faults that the process survives, counted for `junction_faults_total`. One count for the whole process, because they
 * happen below everything that knows of metrics: at a spawn, on a socket.
 */
export const FAULTS = [
  /** The kernel would not start a program: no descriptors, processes or memory left. */
  'program_not_started',
  /** A program hung and was killed. */
  'program_timed_out',
  /** A netlink notification that could not be decoded. */
  'netlink_malformed',
  /** Notifications were lost, because the receive buffer was full. */
  'netlink_overrun',
  /** A netlink message that another process sent, and not the kernel; it was dropped. */
  'netlink_not_from_kernel',
  /** A line of the log that could not be written: its reader stopped reading, or the disk is full. */
  'log_line_lost',
] as const;

export type FaultName = (typeof FAULTS)[number];

type Listener = (fault: FaultName, detail: string, times: number) => void;

const counts = new Map<FaultName, number>(FAULTS.map((fault) => [fault, 0]));
const listeners = new Set<Listener>();

/** `detail` is for the log: which message, which sender. */
export function countFault(fault: FaultName, detail = '', times = 1): void {
  counts.set(fault, (counts.get(fault) ?? 0) + times);
  for (const listener of listeners) listener(fault, detail, times);
}

export function faultCounts(): ReadonlyMap<FaultName, number> {
  return counts;
}

/** Returns what ends it. */
export function onFault(listener: Listener): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}
