/** Races in words. */
import { writeFileSync } from 'node:fs';
import { UNSEEN_PACKAGE } from './race-events.ts';
import { memoryText, type Race, type RaceReport, type RaceSide, shortSite } from './race-findings.ts';
import { drawRaces } from './race-picture.ts';

export function describeRace({ where, accesses, missing, mend, count }: Race): string {
  const [a, b] = accesses;
  return [
    `race: ${memoryText(where)}${count > 1 ? `, ${count} times` : ''}`,
    `  ${sideText(a)}`,
    `  ${sideText(b)}`,
    `  missing: ${missing}`,
    `  to mend it: ${mend}`,
  ].join('\n');
}

function sideText({ rank, call, does, argument, target, site, epoch }: RaceSide): string {
  const to = target === undefined ? '' : ` to rank ${target}`;
  const what = argument === undefined ? does : `${does} its ${argument}`;
  const within = epoch === undefined ? '' : `, in the epoch of ${epoch.kind} opened at ${shortSite(epoch.opened)}`;
  return `rank ${rank}: ${call}${to} ${what} at ${shortSite(site)}${within}`;
}

function reportText({ races, strict, unseen, forgotten, shadow, clocks }: RaceReport): string {
  const lines = races.map((race) => describeRace(race));
  const rule = strict ? 'atomic calls order nothing (strict)' : 'atomic calls on one word order its ranks';
  const found = races.length === 0 ? 'no race' : races.length === 1 ? '1 race' : `${races.length} races`;
  const mib = (bytes: number): string => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  lines.push(`races: ${found}; ${rule}; ${mib(shadow.bytes)} for accesses to ${mib(shadow.windows)} of windows`);
  if (clocks !== undefined) {
    const late = clocks.late === 0 ? '' : `; ${clocks.late} calls came too early by them, and were put in order`;
    lines.push(`  clocks of ${clocks.hosts} hosts: set to within ${clocks.within.toFixed(0)} µs${late}`);
  }
  for (const one of unseenTexts(unseen)) lines.push(`  not seen: ${shortSite(one)}`);
  const bound = `since memory for them is bounded (${mib(shadow.bound)}; --races-memory)`;
  if (forgotten > 0) lines.push(`  forgotten: accesses to ${forgotten} bytes, ${bound}`);
  if (shadow.words > 0) lines.push(`  taken for one: ${shadow.words} words that atomic calls have changed, ${bound}`);
  return lines
    .map((line) => line.replace(/^/gm, 'onesided: '))
    .join('\n')
    .concat('\n');
}

/** Packages in one line. */
function unseenTexts(unseen: readonly string[]): string[] {
  const packages = unseen
    .filter((one) => one.startsWith(UNSEEN_PACKAGE))
    .map((one) => one.slice(UNSEEN_PACKAGE.length));
  const others = unseen.filter((one) => !one.startsWith(UNSEEN_PACKAGE));
  if (packages.length === 0) return others;
  return [...others, `${UNSEEN_PACKAGE.trimEnd()}${packages.length > 1 ? 's' : ''} ${packages.sort().join(', ')}`];
}

/** The exit code of a program that ended well but for its races. */
export const RACE_EXIT = 66;

/**
 * Shows a report, and writes it to files if there are some: as JSON, and as a picture.
 * @returns the exit code of a job that has ended well otherwise
 */
export function showReport(
  report: RaceReport,
  { file, picture }: { readonly file?: string | undefined; readonly picture?: string | undefined },
  write: (text: string) => void,
): number {
  write(reportText(report));
  const isWritten = [
    file === undefined || save(file, `${JSON.stringify(report, undefined, 2)}\n`),
    picture === undefined || save(picture, drawRaces(report)),
  ].every(Boolean);
  return report.races.length > 0 ? RACE_EXIT : isWritten ? 0 : 1;
}

/** @returns whether it was written; if not, stderr says why */
function save(file: string, text: string): boolean {
  try {
    writeFileSync(file, text);
    return true;
  } catch (error) {
    process.stderr.write(`onesided: races: ${file} was not written: ${(error as Error).message}\n`);
    return false;
  }
}
