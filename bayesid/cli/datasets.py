"""bayesid datasets: list, fetch."""


def add_arguments(parser):
    actions = parser.add_subparsers(dest="action", required=True, metavar="list|fetch")
    actions.add_parser("list", help="the registry of public recordings, and the schema presets")
    fetch = actions.add_parser("fetch", help="get a recording, checked against its SHA-256")
    fetch.add_argument("name", metavar="NAME")
    fetch.add_argument("--data", metavar="DIR", help="local mirror (default: BAYESID_DATA, else download)")
    fetch.add_argument("--file", action="append", metavar="FILE", help="one file of the set (may be repeated)")


def run(args):
    from bayesid.logs import registry, schema_names

    if args.action == "fetch":
        for path in registry.fetch(args.name, args.file, data=args.data):
            print(path)
        return 0
    for card in registry.cards():
        print(f"{card.name:<18} {card.robot}")
        print(f"{'':<18} {card.description}; licence: {card.licence}")
    print(f"\nschema presets: {', '.join(schema_names())}")
    return 0
