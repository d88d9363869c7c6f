/** What the calls of one window share. */
import type { WindowParts } from '../creation/window-parts.ts';
import { Epochs } from '../epochs/epochs.ts';
import { Paths } from '../path/paths.ts';
import { PassiveTarget } from './passive-target.ts';
import { SlowPath } from './slow-path.ts';
import { tracedSchemes } from './traced-window.ts';

export class WindowCore {
  readonly parts: WindowParts;
  readonly epochs: Epochs;
  readonly paths: Paths;
  readonly passive: PassiveTarget;
  readonly slowPath: SlowPath;

  constructor(made: WindowParts) {
    const { races } = made.comm.job;
    this.parts = tracedSchemes(races === undefined ? made : races.schemes(made));
    this.epochs = new Epochs(this.parts);
    this.paths = new Paths(this.parts, this.epochs);
    this.passive = new PassiveTarget(this.parts, this.epochs, this.paths);
    this.slowPath = new SlowPath(this.epochs, this.paths);
  }
}
