/** A datagram that is under way on a modelled fabric. Its copies share it; it does not change. */
import type { Mapping } from '../core/mapped-memory.ts';

export interface Datagram {
  /** The header, and the data behind it. */
  readonly data: Mapping;
  /** Bytes of both. */
  readonly length: number;
  readonly qkey: number;
  /** The sender's queue pair. */
  readonly source: number;
  /** Of the completion, bits of `WcFlag`. */
  readonly flags: number;
  readonly immediate: number;
  readonly solicited: boolean;
}
