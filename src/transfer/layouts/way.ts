/**
 * How one put or get of a layout moves. `multi-write`: a request for each stretch of bytes that both sides share.
 */
export type Way = 'multi-write' | 'pack' | 'sgrs';
