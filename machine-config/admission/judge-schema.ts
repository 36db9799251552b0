import { containerRuntimeOf, nodeFlavourOf } from '../api/controller-config.js';
import {
  parseControllerConfig,
  parseImageDigestMirrorSet,
  parseImageTagMirrorSet,
  parseMachineConfiguration,
  type Parsed,
  type Problem,
} from '../api/parse.js';
import { problemsOf as problemsOfContainerRuntime } from '../sources/container-runtime/generate.js';
import { checkFields } from '../sources/kubelet/check-fields.js';
import { below, readOwnSettings } from '../sources/kubelet/own-settings.js';
import { formatProblems } from './problems.js';
import type { AdmissionContext, AdmissionQuestion, AdmissionVerdict, Judge } from './question.js';

function judgeBy(problemsOf: (object: unknown, context: AdmissionContext) => readonly Problem[]): Judge {
  return ({ kind, object }: AdmissionQuestion, context: AdmissionContext): AdmissionVerdict => {
    const problems = problemsOf(object, context);
    return problems.length === 0 ? { warnings: [] } : { refusal: formatProblems(kind, object, problems), warnings: [] };
  };
}

const bySchema = (parse: (object: unknown) => Parsed<unknown>): Judge =>
  judgeBy((object) => {
    const parsed = parse(object);
    return parsed.ok ? [] : parsed.problems;
  });

/** Kinds that are judged by themselves, in the words of what reads them. */
export const judgeMachineConfiguration = bySchema(parseMachineConfiguration);
export const judgeControllerConfig = bySchema(parseControllerConfig);
export const judgeImageDigestMirrorSet = bySchema(parseImageDigestMirrorSet);
export const judgeImageTagMirrorSet = bySchema(parseImageTagMirrorSet);

/** What fields say together depends on what the pool's other configs say, so it is a warning. */
export const judgeKubeletConfig: Judge = ({ kind, object }, { controllerConfig }) => {
  const { fields, problems } = readOwnSettings(object, nodeFlavourOf(controllerConfig));
  if (problems.length > 0) return { refusal: formatProblems(kind, object, problems), warnings: [] };
  const doubts = checkFields(fields).map(below);
  return { warnings: doubts.map((doubt) => `${formatProblems(kind, object, [doubt])}, or say so in another config`) };
};

export const judgeContainerRuntimeConfig = judgeBy((object, { controllerConfig }) =>
  problemsOfContainerRuntime(object, containerRuntimeOf(controllerConfig)),
);
