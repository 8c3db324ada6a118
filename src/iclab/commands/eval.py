"""`iclab eval`: the error of a saved model under any attack."""

from __future__ import annotations

from iclab.commands.options import Parser, add_spec, read_spec
from iclab.commands.output import to_text
from iclab.errors import IclabError
from iclab.probes import bayes_predictor, information_floor, measure_error
from iclab.prompts import Classification
from iclab.training import load_checkpoint


def main(arguments: list[str]) -> None:
    """Measure the error on test prompts: those of training, with the options given."""
    parser = Parser("eval", "Measure the error of a checkpoint on fresh prompts. Test prompts are those of training "
                            "unless options change them.")
    parser.add_argument("checkpoint", help="a file that `iclab train` saved")
    parser.add_argument("--count", type=int, default=10_000, metavar="INT", help="test prompts [default: 10000]")
    parser.add_argument("--seed", type=int, default=0, metavar="INT", help="seed of the test prompts [default: 0]")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_spec(parser, Classification(), "test.", otherwise="as in training")
    options = vars(parser.parse_args(arguments))
    trained = load_checkpoint(options["checkpoint"])
    if getattr(trained.run.prompts, "kind", "labels") != "labels":
        raise IclabError(f"checkpoint must hold a model that predicts labels, got {options['checkpoint']!r}, which "
                         f"reads "
                         "chains; iclab.chain_errors measures it")
    test = read_spec(trained.run.prompts, options, "test.")
    if test.dimension != trained.run.prompts.dimension:
        parser.error(f"test.dimension must be that of the model, {trained.run.prompts.dimension}, got {test.dimension}")
    rate = measure_error(trained, test, count=options["count"], seed=options["seed"])
    bayes = measure_error(bayes_predictor(test), test, count=options["count"], seed=options["seed"])
    floor = information_floor(test)
    if options["json"]:
        print(to_text({**rate._asdict(), "floor": floor, "bayes": bayes.error, "status": trained.status}))
        return
    print(f"error {rate.error:.4f} [{rate.low:.4f}, {rate.high:.4f}]  hinge {rate.hinge:.4f}  floor {floor:.4f}  "
          f"Bayes {bayes.error:.4f}  ({rate.prompts} prompts, model {trained.status})")
