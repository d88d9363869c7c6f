/** What a provider says of itself: bootstrap, the command line and its help know it from this alone. */
import type { Native } from '../native.ts';
import type { Context } from '../verbs/device.ts';

export interface ProviderKind<N extends string = string> {
  /** Its value of `ONESIDED_PROVIDER` and of `onesided run --provider`. */
  readonly name: N;
  /** It connects ranks for which no provider is named. */
  readonly isDefault?: true;
  /** A line of the help of `onesided run`. */
  readonly summary: string;
  /** What it needs: the ranks that it can connect. Processes have the native addon. */
  readonly ranks: readonly ('processes' | 'threads')[];
  /**
   * Opens it for a rank that is a process.
   * @param table where ranks find each other, in the control memory
   * Errors: `ERR_PROVIDER_UNAVAILABLE`.
   */
  open(native: Native, table: Int32Array, rank: number, size: number): Context;
  /**
   * Opens it for a rank that is a process, in a job whose ranks may be on several hosts; absent if it does not connect
   * such ranks. Parameters and errors: as `open`.
   * @param host the address of this host at which others are likely to reach it
   */
  openDistant?(native: Native, table: Int32Array, rank: number, size: number, host: string): DistantContext;
  /** What there is of it on this machine, and why not the rest. */
  report(): ProviderReport;
}

/** A rank's context in a job on several hosts: it is opened before it knows the others, and then hears of all. */
export interface DistantContext {
  readonly context: Context;
  /** Where the others find it. It goes as JSON, on a card that has room for some hundred characters. */
  readonly address: object;
  /** Addresses of this host at which a host that the provider reaches is likely to reach it by TCP, too. */
  readonly hosts: readonly string[];
  /**
   * Takes in where all ranks are.
   * @param addresses what they say of themselves, by rank
   * @param neighbours the processes of those on this host, by rank
   */
  store(addresses: readonly object[], neighbours: readonly (number | undefined)[]): void;
  /**
   * Tries whether this host reaches another rank, if that can be known without it. Resolves to nothing, or to where it
   * was tried and why not.
   * @param address what that rank says of itself
   */
  refusal?(address: object, signal: AbortSignal): Promise<string | undefined>;
}

export interface ProviderReport {
  /** For `onesided info --json`. */
  readonly json: object;
  /** For `onesided info`: names and values. */
  readonly lines: readonly (readonly [name: string, value: string])[];
}

/** Whether something can be used on this machine. */
export interface Availability {
  readonly available: boolean;
  /** Why not, and what to do. */
  readonly reason?: string;
}

/** @param reason why it is not available */
export function availability(reason: string | undefined): Availability {
  return reason === undefined ? { available: true } : { available: false, reason };
}

export function showAvailability({ available, reason }: Availability): string {
  return available ? 'yes' : `no: ${reason}`;
}

export function providerKind<const N extends string>(kind: ProviderKind<N>): ProviderKind<N> {
  return kind;
}
