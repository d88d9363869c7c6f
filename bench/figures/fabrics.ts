/** The fabrics of the figures. In a worker that is told so, one number of one of them is another (sensitivity.ts). */
import { workerData } from 'node:worker_threads';
import { type Fabric, loadFabric } from 'onesided/fabrics';

/** A number of a fabric, and by what it is multiplied. */
export interface Change {
  readonly fabric: string;
  /** As `host.copy`. */
  readonly number: string;
  readonly factor: number;
}

const change = workerData as Change | null;

/** A fabric by its name, as this worker has it. */
export function fabricOf(name: string): Fabric {
  const fabric = loadFabric(name);
  return change?.fabric === name ? changed(fabric, change) : fabric;
}

/** What is whole stays whole: it is rounded away from what it was. */
export function changed(fabric: Fabric, { number, factor }: Pick<Change, 'number' | 'factor'>): Fabric {
  const [group, field] = number.split('.');
  const numbers = fabric[group as keyof Fabric] as unknown as Readonly<Record<string, number>>;
  const before = numbers[field];
  const exact = before * factor;
  const after = !Number.isInteger(before) ? exact : factor < 1 ? Math.floor(exact) : Math.ceil(exact);
  return { ...fabric, [group]: { ...numbers, [field]: after } };
}
