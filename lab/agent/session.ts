import { Socket } from 'node:net';
import type { Dial, OpenedSession, Outcome, Reply } from '../protocol.ts';
import { type Failure, failureOf, isCallerMistake } from './failure.ts';
import { readLines } from './lines.ts';
import { sctpSocket } from './sctp.ts';

/** A TCP or SCTP connection that stays open over several questions. */
export interface Conversation {
  ask(timeoutMs: number): Promise<Outcome>;
  end(): void;
}

const sessions = new Map<number, Conversation>();
let lastSession = 0;

export async function openSession(input: Dial): Promise<OpenedSession> {
  const conversation = await converse(input);
  if ('outcome' in conversation) return conversation;
  sessions.set(++lastSession, conversation);
  return { outcome: 'open', session: lastSession };
}

export async function send(input: {
  readonly session: number;
  readonly timeoutMs: number;
}): Promise<Outcome> {
  const conversation = sessions.get(input.session);
  if (!conversation) throw new Error(`no session ${input.session}: it was closed`);
  return conversation.ask(input.timeoutMs);
}

export function closeSession(session: number): null {
  sessions.get(session)?.end();
  sessions.delete(session);
  return null;
}

export function converse(input: Dial, protocol: 'tcp' | 'sctp' = 'tcp'): Promise<Conversation | Failure> {
  return new Promise((resolve, reject) => {
    const socket = protocol === 'sctp' ? sctpSocket(input.address) : new Socket();
    socket.connect({
      host: input.address,
      port: input.port,
      ...(input.source !== undefined && { localAddress: input.source }),
      ...(input.sourcePort !== undefined && { localPort: input.sourcePort }),
    });
    const timer = setTimeout(() => {
      socket.destroy();
      resolve({ outcome: 'timeout' });
    }, input.timeoutMs);
    socket.once('error', (error) => {
      clearTimeout(timer);
      if (isCallerMistake(error)) reject(error);
      else resolve(failureOf(error));
    });
    socket.once('connect', () => {
      clearTimeout(timer);
      socket.removeAllListeners('error');
      resolve(conversationOn(socket));
    });
  });
}

function conversationOn(socket: Socket): Conversation {
  let broken: Failure | undefined;
  let waiting: ((outcome: Outcome) => void) | undefined;
  const settle = (outcome: Outcome): void => {
    waiting?.(outcome);
    waiting = undefined;
  };
  const breakOff = (failure: Failure): void => {
    broken ??= failure;
    settle(broken);
  };
  readLines(socket, (line) => settle({ outcome: 'answer', reply: JSON.parse(line) as Reply }));
  socket.on('error', (error) => breakOff(failureOf(error)));
  socket.on('close', () => breakOff({ outcome: 'unreachable', code: 'EOF' }));
  return {
    ask: (timeoutMs) =>
      new Promise((resolve, reject) => {
        if (broken) return resolve(broken);
        if (waiting) return reject(new Error('the session still waits for its last answer'));
        const timer = setTimeout(() => settle({ outcome: 'timeout' }), timeoutMs);
        waiting = (outcome) => {
          clearTimeout(timer);
          resolve(outcome);
        };
        socket.write('?\n');
      }),
    // A reset leaves no TIME_WAIT behind, so the same source port can be used again at once.
    end: () => void socket.resetAndDestroy(),
  };
}
