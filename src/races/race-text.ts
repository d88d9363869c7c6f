/** Races in words. */
import { writeFileSync } from 'node:fs';
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
  const mib = (shadow.bytes / 2 ** 20).toFixed(1);
  lines.push(`races: ${found}; ${rule}; ${mib} MiB for what was accessed`);
  if (clocks !== undefined) {
    const late = clocks.late === 0 ? '' : `; ${clocks.late} calls came too early by them, and were put in order`;
    lines.push(`  clocks of ${clocks.hosts} hosts: set to within ${clocks.within.toFixed(0)} µs${late}`);
  }
  for (const one of unseen) lines.push(`  not seen: ${one}`);
  if (forgotten > 0) lines.push(`  forgotten: accesses to ${forgotten} bytes, since memory for them is bounded`);
  return lines
    .map((line) => line.replace(/^/gm, 'onesided: '))
    .join('\n')
    .concat('\n');
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
  if (file !== undefined) writeFileSync(file, `${JSON.stringify(report, undefined, 2)}\n`);
  if (picture !== undefined) writeFileSync(picture, drawRaces(report));
  return report.races.length > 0 ? RACE_EXIT : 0;
}
