import { parseMessage } from '../protocol';
import { NotebookSession } from '../session';
import { FakeContext, FakeKernel, codeCell, notebookOf } from './fakecontext';
import { settled } from './fakepanel';
// The kernel's tests hold the other end of the comm against the same messages.
import messages from './messages.json';

/** Open the notebook of `messages.opening`. */
async function opened() {
  const [a, b] = messages.opening.cells;
  const model = notebookOf([
    codeCell(a.id, {
      execution_count: a.execution_count,
      metadata: { crush: a.crush }
    }),
    codeCell(b.id)
  ]);
  model.setMetadata('crush', messages.opening.notebook);
  const kernel = new FakeKernel();
  const context = new FakeContext(model, kernel);
  const session = new NotebookSession(context.asContext());
  await settled();
  return { model, context, comm: kernel.comm, session };
}

test('the comm is opened as the kernel expects', async () => {
  const { comm } = await opened();

  expect(comm.opening).toEqual(messages.opening);
});

test('the page tells what the kernel expects', async () => {
  const { model, context, comm, session } = await opened();

  messages.fromKernel.forEach(message => comm.hear(message));
  model.sharedModel.addCell({ cell_type: 'code', id: 'c' });
  await settled();
  void context.save();
  context.rename('folder/other.ipynb');
  messages.fromKernelToPages.forEach(message => comm.hear(message));
  session.say(session.steering!, 'Use a branch.');

  expect(comm.sent).toEqual(messages.fromPage);
});

test('the page answers what the kernel asks', async () => {
  const { comm } = await opened();

  for (const { question, answers } of messages.asked) {
    comm.sent.length = 0;
    comm.hear(question);
    await settled();

    expect(comm.sent).toEqual(answers);
  }
});

const toPages = [
  ...messages.fromKernel,
  ...messages.fromKernelToPages,
  ...messages.asked.map(({ question }) => question)
];
const fields = toPages.flatMap(message =>
  Object.keys(message).map(field => [message.method, field, message] as const)
);

test.each(fields)('of %s, %s is understood', (_, field, message) => {
  const without = { ...message, [field]: undefined };

  expect(parseMessage(message)).not.toBeNull();
  expect(parseMessage(without)).not.toEqual(parseMessage(message));
});

const [picture] = messages.fromKernel.flatMap(({ method, cells }) =>
  method === 'outputs' ? (cells as object[]) : []
);

test.each(Object.keys(picture))('of a picture, %s is understood', field => {
  const said = (cell: object) =>
    parseMessage({ method: 'outputs', cells: [cell] });

  expect(said({ ...picture, [field]: undefined })).not.toEqual(said(picture));
});
