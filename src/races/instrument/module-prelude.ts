/** The first statement of an instrumented module. */

/** What the module calls the object that it tells. */
export const NAME = '__onesided_races';

/** @param places and @param shifts see program-calls.ts, which also knows how long the statement is */
export function preludeOf(url: string, places: string, shifts: string): string {
  const registry = 'globalThis[Symbol.for("onesided.races.calls")]';
  return `const ${NAME} = ${registry}(${JSON.stringify(url)}, ${JSON.stringify(places)}, ${JSON.stringify(shifts)});`;
}
