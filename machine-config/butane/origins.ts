import type { FieldPath } from '../ignition/findings.js';
import { toButaneKey } from './schema.js';

/** Where in the Butane file a place of the config that came out of it has its reason. */
export class Origins {
  readonly #known = new Map<string, { readonly path: FieldPath; readonly withRest: boolean }>();

  /** Everything at and below `place` of the config comes from this one place of the file. */
  fromOne(place: FieldPath, path: FieldPath): void {
    this.#known.set(JSON.stringify(place), { path, withRest: false });
  }

  /** `place` of the config is this place of the file, and what is below the one is below the other. */
  moved(place: FieldPath, path: FieldPath): void {
    this.#known.set(JSON.stringify(place), { path, withRest: true });
  }

  /** `place` begins with the sections of Ignition. */
  of(place: FieldPath): FieldPath {
    for (let length = place.length; length > 0; length -= 1) {
      const found = this.#known.get(JSON.stringify(place.slice(0, length)));
      if (found === undefined) continue;
      return found.withRest ? [...found.path, ...inButaneWords(place.slice(length))] : found.path;
    }
    return inButaneWords(place);
  }
}

function inButaneWords(place: FieldPath): FieldPath {
  return place.map((step) => (typeof step === 'number' ? step : toButaneKey(step)));
}
