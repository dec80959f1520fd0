"""`driftformer completion`: what makes a shell complete commands, options, agents, environments and policies."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from tyro.conf import Positional

from driftformer.commands.complete import COMPLETE
from driftformer.commands.options import Command

SCRIPTS = {
    "bash": """_driftformer() {
    local IFS=$'\\n'
    COMPREPLY=($(driftformer COMPLETE "${COMP_LINE:0:COMP_POINT}" "$2" 2>/dev/null))
    [[ ${COMPREPLY[0]} != *[=@] ]] || compopt -o nospace
}
complete -o default -F _driftformer driftformer""",
    "zsh": """_driftformer() {
    local -a found
    found=(${(f)"$(driftformer COMPLETE "${(j: :)words[1,CURRENT]}" 2>/dev/null)"})
    (( $#found )) || { _files; return }
    compadd -- ${found:#*[=@]}
    compadd -S '' -- ${(M)found:#*[=@]}
}
(( $+functions[compdef] )) || { autoload -Uz compinit && compinit }
compdef _driftformer driftformer""",
    "fish": """complete -c driftformer -a '(driftformer COMPLETE (commandline -cp | string collect))'""",
}


@dataclass(frozen=True)
class Completion(Command):
    """Complete names of commands, agents and worlds with TAB.

    For example, once and for all, in bash, zsh or fish:
        echo 'eval "$(driftformer completion bash)"' >> ~/.bashrc
        echo 'eval "$(driftformer completion zsh)"' >> ~/.zshrc
        driftformer completion fish > ~/.config/fish/completions/driftformer.fish

    Names are looked up when TAB is pressed, so those of other packages are known too.
    """

    computes: ClassVar[bool] = False
    shell: Positional[Literal["bash", "zsh", "fish"]]
    """The shell to print the lines for."""

    def run(self) -> None:
        print(SCRIPTS[self.shell].replace("COMPLETE", COMPLETE))
