/**
 * Counts what work does with lists, sets and maps: each element that an iteration visits, each lookup, each insertion.
 * Unlike a clock, the count is the same on every machine; four times the input may cost little more than four times.
 */

/** Methods that look at every element of a list, or stop when they have found one: each element counts as one. */
const LIST_SEARCHES = [
  'includes',
  'indexOf',
  'lastIndexOf',
  'join',
  'slice',
  'splice',
  'shift',
  'unshift',
] as const;
const LIST_CALLBACKS = [
  'find',
  'findIndex',
  'some',
  'every',
  'filter',
  'map',
  'flatMap',
  'forEach',
  'reduce',
] as const;
const MAP_METHODS = ['get', 'has', 'set', 'delete'] as const;
const SET_METHODS = ['has', 'add', 'delete'] as const;

type Method = (this: unknown, ...args: unknown[]) => unknown;

/** The number of operations until the work is done. */
export async function operationsOf(work: () => unknown): Promise<number> {
  let operations = 0;
  const undo: (() => void)[] = [];
  const replace = (target: object, name: string | symbol, made: (original: Method) => Method): void => {
    const descriptor = Object.getOwnPropertyDescriptor(target, name);
    if (!descriptor) throw new Error(`no ${String(name)}`);
    Object.defineProperty(target, name, { ...descriptor, value: made(descriptor.value as Method) });
    undo.push(() => Object.defineProperty(target, name, descriptor));
  };
  const counted = (original: Method): Method =>
    function (...args) {
      operations++;
      return Reflect.apply(original, this, args);
    };
  for (const name of MAP_METHODS) replace(Map.prototype, name, counted);
  for (const name of SET_METHODS) replace(Set.prototype, name, counted);
  for (const iterator of [[].values(), new Map().values(), new Set().values()])
    replace(Object.getPrototypeOf(iterator) as object, 'next', counted);
  for (const name of LIST_SEARCHES)
    replace(
      Array.prototype,
      name,
      (original) =>
        function (...args) {
          const found = Reflect.apply(original, this, args);
          operations += lookedAt(name, this as readonly unknown[], found);
          return found;
        },
    );
  for (const name of LIST_CALLBACKS)
    replace(
      Array.prototype,
      name,
      (original) =>
        function (callback, ...rest) {
          const visit: Method = function (...args) {
            operations++;
            return Reflect.apply(callback as Method, this, args);
          };
          return Reflect.apply(original, this, [visit, ...rest]);
        },
    );
  try {
    await work();
  } finally {
    for (const each of undo.reverse()) each();
  }
  return operations;
}

function lookedAt(name: string, list: readonly unknown[], found: unknown): number {
  if (Array.isArray(found)) return found.length;
  return name === 'indexOf' && typeof found === 'number' && found >= 0 ? found + 1 : list.length;
}

/** Work whose cost is checked at two sizes, the second four times the first. */
export async function growthOf(
  work: (size: number) => Promise<() => unknown> | (() => unknown),
): Promise<number> {
  const [small, large] = [await work(SMALL), await work(SMALL * GROWTH)];
  return (await operationsOf(large)) / (await operationsOf(small));
}

const SMALL = 300;
const GROWTH = 4;
/** What four times the input may cost, as a multiple: linear work is at 4, quadratic at 16. */
export const LINEAR = 4.5;
