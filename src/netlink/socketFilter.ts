/**
 * Which messages a netlink socket gets, as a classic BPF program that the kernel runs before it queues one. What is
 * dropped there costs neither room in the socket's buffer nor a thread's time: a cold start of ours would arrive with
 * a hundred thousand messages. Numbers from linux/filter.h.
 */
import { LITTLE_ENDIAN } from './codec.ts';

const LOAD_WORD = 0x20;
const LOAD_HALF = 0x28;
const JUMP_IF_EQUAL = 0x15;
const RETURN = 0x06;
const INSTRUCTION_BYTES = 8;
const EVERYTHING = 0xffffffff;
/** struct nlmsghdr */
const TYPE_OFFSET = 4;
const SENDER_OFFSET = 12;

interface MessageFilter {
  /** Names of sockets (port ids) whose requests cause no notification. */
  readonly notFrom: readonly number[];
  /** Only messages of this type; all messages of a datagram are taken to be of the first one's. */
  readonly onlyType?: number | undefined;
}

interface Instruction {
  readonly code: number;
  readonly value: number;
  readonly ifTrue?: number;
  readonly ifFalse?: number;
}

export function filterProgram({ notFrom, onlyType }: MessageFilter): Uint8Array {
  const instructions: Instruction[] = [];
  if (onlyType !== undefined) {
    instructions.push(
      { code: LOAD_HALF, value: TYPE_OFFSET },
      { code: JUMP_IF_EQUAL, value: swap16(onlyType), ifTrue: 1 },
      { code: RETURN, value: 0 },
    );
  }
  instructions.push({ code: LOAD_WORD, value: SENDER_OFFSET });
  for (const sender of notFrom) {
    instructions.push({ code: JUMP_IF_EQUAL, value: swap32(sender), ifFalse: 1 }, { code: RETURN, value: 0 });
  }
  instructions.push({ code: RETURN, value: EVERYTHING });
  return encode(instructions);
}

function encode(instructions: readonly Instruction[]): Uint8Array {
  const bytes = new Uint8Array(instructions.length * INSTRUCTION_BYTES);
  const view = new DataView(bytes.buffer);
  for (const [index, { code, value, ifTrue = 0, ifFalse = 0 }] of instructions.entries()) {
    const offset = index * INSTRUCTION_BYTES;
    view.setUint16(offset, code, LITTLE_ENDIAN);
    view.setUint8(offset + 2, ifTrue);
    view.setUint8(offset + 3, ifFalse);
    view.setUint32(offset + 4, value, LITTLE_ENDIAN);
  }
  return bytes;
}

/** BPF reads in network order; netlink headers are in the machine's. */
function swap32(value: number): number {
  const view = new DataView(new ArrayBuffer(4));
  view.setUint32(0, value >>> 0, LITTLE_ENDIAN);
  return view.getUint32(0);
}

function swap16(value: number): number {
  const view = new DataView(new ArrayBuffer(2));
  view.setUint16(0, value, LITTLE_ENDIAN);
  return view.getUint16(0);
}

export const FILTER_INSTRUCTION_BYTES = INSTRUCTION_BYTES;
