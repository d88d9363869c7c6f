/**
 * Which numbers of a fabric a run reads: a number that it does not read cannot change its result.
 *
 * The parts of an observed fabric tell of each field that is read. `checkFabric` takes such a part as it is, without
 * reading it: it was made from a fabric that had been checked, and cannot be changed. A part that a program derives
 * from one of them, as `{ ...fabric.host, helper: 0 }`, has read it all and tells nothing any more.
 */
import type { Fabric } from './fabric-numbers.ts';

/** The observed parts, and which each of them is. */
const parts = new WeakMap<object, string>();

/**
 * Returns the fabric for runs that tell `read` of each number that they read, as `host.copy`, each time that they do.
 * Reading a number does not mean that the result depends on it; not reading it means that it does not.
 * @param fabric as `loadFabric` or `readFabric` returned it
 * Cost: such a run takes several times as long.
 */
export function observeFabric(fabric: Fabric, read: (number: string) => void): Fabric {
  const observed = Object.entries(fabric).map(([name, part]: [string, unknown]) => {
    if (typeof part !== 'object' || part === null) return [name, part];
    const proxy = new Proxy(Object.freeze({ ...part }), {
      get(numbers, field) {
        if (typeof field === 'string') read(`${name}.${field}`);
        return Reflect.get(numbers, field) as unknown;
      },
    });
    parts.set(proxy, name);
    return [name, proxy];
  });
  return Object.freeze(Object.fromEntries(observed)) as Fabric;
}

/** The name of an observed part; undefined if `part` is none. */
export function observedPart(part: unknown): string | undefined {
  return typeof part === 'object' && part !== null ? parts.get(part) : undefined;
}
