import type { MetricCounter, MetricGauge, MetricHistogram, MetricMeter, MetricTags } from '@temporalio/common';

/**
 * A meter that survives the SDK's runtime: this ends with the last connection, also with one that could not be made, and
 * another takes its place; whoever measures through the old one then gets errors. What a gauge showed last, it shows in
 * the next runtime too, as soon as it is set again for anything.
 *
 * `present` gives the meter of the runtime that is there now.
 */
export function lastingMeter(present: () => MetricMeter): MetricMeter {
  return {
    createCounter: (...words) => counter(renewed(present, (meter) => meter.createCounter(...words))),
    createHistogram: (...words) => histogram(renewed(present, (meter) => meter.createHistogram(...words))),
    createGauge: (...words) => gauge(renewed(present, (meter) => meter.createGauge(...words))),
    withTags: (tags) => lastingMeter(renewed(present, (meter) => meter.withTags(tags))),
  };
}

/** Made anew when the meter is another. */
function renewed<T>(present: () => MetricMeter, make: (meter: MetricMeter) => T): () => T {
  let known: { readonly meter: MetricMeter; readonly made: T } | undefined;
  return () => {
    const meter = present();
    if (known?.meter !== meter) known = { meter, made: make(meter) };
    return known.made;
  };
}

function counter(present: () => MetricCounter): MetricCounter {
  return {
    ...present(),
    add: (value, tags) => present().add(value, tags),
    withTags: (tags) => counter(() => present().withTags(tags)),
  };
}

function histogram(present: () => MetricHistogram): MetricHistogram {
  return {
    ...present(),
    record: (value, tags) => present().record(value, tags),
    withTags: (tags) => histogram(() => present().withTags(tags)),
  };
}

function gauge(present: () => MetricGauge): MetricGauge {
  const shown = new Map<string, readonly [value: number, tags: MetricTags | undefined]>();
  let last = present();
  return {
    ...last,
    set(value, tags) {
      const now = present();
      if (now !== last) for (const [earlier, its] of shown.values()) now.set(earlier, its);
      last = now;
      shown.set(JSON.stringify(tags ?? {}), [value, tags]);
      now.set(value, tags);
    },
    withTags: (tags) => gauge(() => present().withTags(tags)),
  };
}
