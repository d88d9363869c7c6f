/**
 * What each rank waits in, for a launcher that ends the job because it takes too long.
 *
 * The launcher asks by a word of the header, and rings all bells. A rank that sleeps in a call of the library wakes,
 * finds the word, and writes what it waits in into its place in the control memory; its answer counts once its length
 * is there. A rank that computes, or awaits something else, does not answer. Until the launcher asks, no rank writes
 * anything: a wait that is not asked about costs one load each time its rank goes to sleep.
 */
import { type Control, Header, REPORT_BYTES, Slot } from './control-region.ts';

/** To be followed by a ring of all bells. */
export function askForReports({ header }: Control): void {
  Atomics.store(header, Header.ASKED, 1);
}

/** Whether this rank was asked to say what it waits in, and has not done so yet. */
export function isAsked({ header, slots, slotWords, reports }: Control, rank: number): boolean {
  return (
    Atomics.load(header, Header.ASKED) !== 0 &&
    reports.length > 0 &&
    Atomics.load(slots, rank * slotWords + Slot.REPORTED) === 0
  );
}

/** Written once. */
export function report({ slots, slotWords, reports }: Control, rank: number, text: string): void {
  // Room for the dots is kept. What does not fit is cut off between two characters.
  const bytes = Buffer.alloc(REPORT_BYTES);
  const { read, written } = new TextEncoder().encodeInto(text, bytes.subarray(0, REPORT_BYTES - 3));
  const length = read < text.length ? written + bytes.write('…', written) : written;
  reports.set(bytes.subarray(0, length), rank * REPORT_BYTES);
  Atomics.store(slots, rank * slotWords + Slot.REPORTED, length);
}

/** What a rank waits in, or undefined if it has not said. */
export function reportOf({ slots, slotWords, reports }: Control, rank: number): string | undefined {
  const length = Atomics.load(slots, rank * slotWords + Slot.REPORTED);
  if (length <= 0 || length > REPORT_BYTES) return undefined;
  const at = rank * REPORT_BYTES;
  return Buffer.from(reports.slice(at, at + length)).toString();
}
