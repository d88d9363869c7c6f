/** What is measured of the simulator, and on how many ranks. */
export const RANKS = { messages: 64, fence: 1024, barrier: 16_384 } as const;

export type Part = keyof typeof RANKS;

/** Messages of each rank. */
export const MESSAGES = 32_000;
